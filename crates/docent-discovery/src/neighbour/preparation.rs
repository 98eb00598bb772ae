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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

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

/// Time for which a check that succeeded is not repeated. A process that deregisters and registers instances
/// again and again would otherwise read those of others each time.
const CHECKED: Duration = Duration::from_secs(60);

/// Recent checks of payloads that compared all other instances, by folder and form, with their times. Shared
/// by the registrations of a registry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks(Arc<Mutex<HashMap<(String, Form), Instant>>>);

impl Checks {
    /// Checks a payload of the form `form` in the node named `name`, unless that was done recently.
    async fn check(&self, client: &Client, folder: &str, name: &str, form: &Form) -> Result<(), Error> {
        let (key, now) = ((folder.to_owned(), form.clone()), Instant::now());
        if self.lock().get(&key).is_some_and(|at| now - *at < CHECKED) {
            return Ok(());
        }
        if readers::check(client, folder, name, form).await? {
            let mut checks = self.lock();
            checks.retain(|_, at| now - *at < CHECKED);
            checks.insert(key, now);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Form), Instant>> {
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
    checked: Option<Form>,
    /// Metadata for which nodes were written, without the state.
    described: Option<Texts>,
}

impl Work {
    async fn run(&self, data: &[u8]) -> Result<(), Error> {
        // Nothing but an instance is ever announced.
        let Ok(instance) = instance::decode(data) else { return Ok(()) };
        let form = Form::of(instance.payload.as_deref());
        if form != Form::Absent && self.done().checked.as_ref() != Some(&form) {
            self.checks.check(&self.client, &self.folder, &instance.id, &form).await?;
            self.done().checked = Some(form);
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
