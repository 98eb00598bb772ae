//! Work that precedes the announcement of an instance.

use super::class::{STATUS, WithMetadata, object};
use super::readers::Form;
use super::{Neighbour, companions, readers};
use crate::instance::{self, EncodedInstance};
use crate::layout::{Placement, RegistryLayout, ServiceSide};
use crate::texts::Texts;
use bytes::Bytes;
use docent_core::recipe::{Preparation, ensure_node};
use docent_core::{Client, CreateMode, Error, ParentKind};
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Returns the work that precedes the writes of an instance's node: checks that typed readers of the folder
/// can read the payload, and writes what `Neighbour::Dubbo3` requires; in Dubbo's layout, creates the folders
/// that its consumers watch. The consumers of a service need none.
pub(crate) fn preparation(
    client: &Client,
    placement: &Placement,
    service: &str,
    side: ServiceSide,
) -> Option<Arc<Preparation>> {
    if side != ServiceSide::Provider {
        return None;
    }
    if placement.layout == RegistryLayout::Dubbo {
        // Folders in which nothing is ever created would keep the containers above them.
        let is_lasting = placement.parents == ParentKind::Persistent;
        let expected = ["configurators", "routers"].map(|folder| placement.of_dubbo(service, folder));
        return is_lasting.then(|| folders(client.clone(), expected));
    }
    let work = Arc::new(Work {
        client: client.clone(),
        folder: placement.folder(service, side),
        neighbour: placement.neighbour,
        checks: placement.checks.clone(),
        done: Mutex::default(),
    });
    Some(Arc::new(move |data: Bytes| {
        let work = Arc::clone(&work);
        Box::pin(async move { work.run(&data).await })
    }))
}

/// Returns the work that creates `folders` once.
fn folders(client: Client, folders: [String; 2]) -> Arc<Preparation> {
    let (folders, done) = (Arc::new(folders), Arc::new(AtomicBool::new(false)));
    Arc::new(move |_| {
        let (client, folders, done) = (client.clone(), Arc::clone(&folders), Arc::clone(&done));
        Box::pin(async move {
            if done.load(Ordering::Relaxed) {
                return Ok(());
            }
            try_join_all(folders.iter().map(|path| ensure_node(&client, path, CreateMode::Persistent)))
                .await?;
            done.store(true, Ordering::Relaxed);
            Ok(())
        })
    })
}

/// Checks of payloads that hold while a registration that made or shared them exists: what its instance does
/// to typed readers, others of the same form do not make worse. Shared by the registrations of a registry, so
/// that only the first one reads the instances of others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks(Arc<Mutex<Known>>);

/// Checked forms of payloads, by folder and form.
type Known = HashMap<(String, Form), Weak<Form>>;

impl Checks {
    fn find(&self, folder: &str, form: &Form) -> Option<Arc<Form>> {
        self.lock().get(&(folder.to_owned(), form.clone()))?.upgrade()
    }

    fn add(&self, folder: &str, form: Form) -> Arc<Form> {
        let check = Arc::new(form.clone());
        let mut checks = self.lock();
        checks.retain(|_, check| check.strong_count() > 0);
        checks.insert((folder.to_owned(), form), Arc::downgrade(&check));
        check
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Work {
    client: Client,
    folder: String,
    neighbour: Option<Neighbour>,
    checks: Checks,
    done: Mutex<Done>,
}

/// Work that was done for earlier data.
#[derive(Debug, Default)]
struct Done {
    /// Form of the payload that was checked.
    check: Option<Arc<Form>>,
    /// Metadata for which nodes were written, without the state.
    described: Option<Texts>,
}

impl Work {
    async fn run(&self, data: &[u8]) -> Result<(), Error> {
        // Nothing but an instance is ever announced.
        let Ok(instance) = instance::decode(data) else { return Ok(()) };
        let form = Form::of(instance.payload.as_deref());
        if form != Form::Absent && self.done().check.as_deref() != Some(&form) {
            let check = match self.checks.find(&self.folder, &form) {
                Some(check) => check,
                None => {
                    readers::check(&self.client, &self.folder, &instance.id, &form).await?;
                    self.checks.add(&self.folder, form)
                }
            };
            self.done().check = Some(check);
        }
        match self.described(&instance) {
            Some(metadata) if self.done().described.as_ref() != Some(&metadata) => {
                companions::write(&self.client, &instance.name, &metadata).await?;
                self.done().described = Some(metadata);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the metadata that Dubbo's nodes are derived from.
    fn described(&self, instance: &EncodedInstance) -> Option<Texts> {
        let payload = instance.payload.as_ref().filter(|_| self.neighbour == Some(Neighbour::Dubbo3))?;
        let WithMetadata { mut metadata } = object::<WithMetadata<Texts>>(payload)?;
        metadata.remove(STATUS);
        Some(metadata)
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
