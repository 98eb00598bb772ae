//! Work of a `Reconciler`'s handle that precedes the writes of its node.

use super::super::Drained;
use super::{Reconciler, StepError};
use crate::error::ErrorKind;
use crate::guard::SessionGeneration;
use bytes::Bytes;
use std::sync::Weak;

impl Reconciler {
    /// Runs the preparation of `data`, unless it has succeeded already. Ends early if the request changes.
    pub(super) async fn prepare(
        &mut self,
        generation: &SessionGeneration,
        data: &Bytes,
        number: Option<u64>,
    ) -> Result<(), StepError> {
        let preparation = self.wanted.borrow().preparation.as_ref().and_then(Weak::upgrade);
        let Some(preparation) = preparation.filter(|_| self.prepared.as_ref() != Some(data)) else {
            return Ok(());
        };
        if number.is_none() {
            // The final data belongs to the data that was wanted last, which may have been refused.
            let is_prepared = self.prepared.is_some() && self.prepared == self.wanted.borrow().data;
            return match is_prepared {
                true => Ok(()),
                false => {
                    self.drained(Drained::Unpublished);
                    Err(StepError::Busy)
                }
            };
        }
        // The client becomes connected only after an attempt at each node, and the work may need the client.
        self.attempted(generation);
        let work = preparation(data.clone());
        drop(preparation);
        tokio::select! {
            result = work => match result {
                Ok(()) => {
                    self.prepared = Some(data.clone());
                    Ok(())
                }
                Err(error) if error.is_retryable() || error.kind() == ErrorKind::Closed => Err(StepError::Busy),
                Err(error) => Err(StepError::Unprepared(error)),
            },
            _ = self.wanted.changed() => Err(StepError::Retry),
            _ = self.stages.changed() => Err(StepError::Retry),
            () = self.shared.closing.cancelled() => Err(StepError::Closed),
        }
    }
}
