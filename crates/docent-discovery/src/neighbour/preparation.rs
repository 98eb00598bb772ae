//! Work that precedes the announcement of an instance.

use super::readers::Form;
use super::{Neighbour, companions, readers};
use crate::instance::{self, EncodedInstance};
use crate::layout::{Placement, RegistryLayout, ServiceSide};
use crate::texts::Texts;
use bytes::Bytes;
use docent_core::recipe::Preparation;
use docent_core::{Client, Error};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the work that precedes the writes of an instance's node: checks that typed readers of the folder
/// can read the payload, and writes what `Neighbour::Dubbo3` requires. Consumers and Dubbo's own layout need
/// none.
pub(crate) fn preparation(
    client: &Client,
    placement: &Placement,
    service: &str,
    side: ServiceSide,
) -> Option<Arc<Preparation>> {
    if placement.layout != RegistryLayout::Curator || side != ServiceSide::Provider {
        return None;
    }
    let work = Arc::new(Work {
        client: client.clone(),
        folder: placement.folder(service, side),
        neighbour: placement.neighbour,
        done: Mutex::default(),
    });
    Some(Arc::new(move |data: Bytes| {
        let work = Arc::clone(&work);
        Box::pin(async move { work.run(&data).await })
    }))
}

struct Work {
    client: Client,
    folder: String,
    neighbour: Option<Neighbour>,
    done: Mutex<Done>,
}

/// Work that was done for earlier data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Done {
    /// Form of the payload that was checked.
    form: Option<Form>,
    /// Metadata for which nodes were written, without the state.
    described: Option<Texts>,
}

#[derive(Deserialize)]
struct WithMetadata {
    metadata: Texts,
}

impl Work {
    async fn run(&self, data: &[u8]) -> Result<(), Error> {
        // Nothing but an instance is ever announced.
        let Ok(instance) = instance::decode(data) else { return Ok(()) };
        let form = Form::of(instance.payload.as_deref());
        if form != Form::Absent && self.done().form.as_ref() != Some(&form) {
            readers::check(&self.client, &self.folder, &instance.id, &form).await?;
            self.change(|done| done.form = Some(form));
        }
        match self.described(&instance) {
            Some(metadata) if self.done().described.as_ref() != Some(&metadata) => {
                companions::write(&self.client, &instance.name, &metadata).await?;
                self.change(|done| done.described = Some(metadata));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the metadata that Dubbo's nodes are derived from.
    fn described(&self, instance: &EncodedInstance) -> Option<Texts> {
        let payload = instance.payload.as_ref().filter(|_| self.neighbour == Some(Neighbour::Dubbo3))?;
        let WithMetadata { mut metadata } = serde_json::from_str(payload.get()).ok()?;
        metadata.remove(super::class::STATUS);
        Some(metadata)
    }

    fn done(&self) -> Done {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Done)) {
        change(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
