//! Exact writes of a `Reconciler`'s node.

use super::{Reconciler, StepError};
use crate::cleanup::{ExactWrite, Marker, Near, NoOwnNode, WriteOutcome};
use crate::guard::SessionGeneration;
use crate::kept::armed::Armed;
use crate::session::{Lane, Watch};
use crate::time::deadline;
use bytes::Bytes;
use docent_proto::{Code, MultiOp};
use std::sync::Arc;
use std::time::Duration;

/// Outcome of an exact write of a kept node.
pub(super) enum Written {
    Applied,
    /// The operation with this index was refused; nothing was applied and nothing will be.
    Refused(usize, Code),
}

impl Reconciler {
    /// Submits `ops` as an exact write.
    pub(super) async fn submit(
        &self,
        generation: &Arc<SessionGeneration>,
        ops: impl IntoIterator<Item = MultiOp>,
    ) -> Result<ExactWrite, StepError> {
        Ok(ExactWrite::submit(self.marker(generation).await?, ops, Lane::Call))
    }

    /// Submits `op`, which relies on the node being as it was read. The request is sent only if no event
    /// about the node has arrived on the link, including events that arrived while the process was stalled.
    pub(super) async fn submit_known(
        &self,
        generation: &Arc<SessionGeneration>,
        known: &mut Armed,
        op: MultiOp,
    ) -> Result<Option<ExactWrite>, StepError> {
        let marker = self.marker(generation).await?;
        // Check after taking the marker, which may have required waiting.
        let Some(losses) = known.losses_if_unchanged(generation) else {
            marker.unused();
            return Ok(None);
        };
        Ok(Some(ExactWrite::submit_on((losses, known.watch.as_deref()), marker, op, Lane::Call)))
    }

    /// Submits `op`, which relies on a read that was sent after `losses` lost links. If the node has a
    /// `watch`, the watch must not have fired.
    pub(super) async fn submit_on(
        &self,
        generation: &Arc<SessionGeneration>,
        (losses, watch): (u64, Option<&Watch>),
        op: MultiOp,
    ) -> Result<ExactWrite, StepError> {
        Ok(ExactWrite::submit_on((losses, watch), self.marker(generation).await?, op, Lane::Call))
    }

    async fn marker(&self, generation: &Arc<SessionGeneration>) -> Result<Marker, StepError> {
        let near = Near::Path(&self.full);
        match Marker::take(&self.shared, generation, near, deadline(Duration::MAX)).await {
            Ok(marker) => Ok(marker),
            Err(NoOwnNode::Cause(cause)) => Err(cause.into()),
            Err(NoOwnNode::Refused(error)) => Err(StepError::Refused(error.of_own_node("create"))),
        }
    }

    /// Waits until the outcome of a write is certain. `data` is what the write puts into the node.
    pub(super) async fn written(
        &mut self,
        generation: &SessionGeneration,
        mut write: ExactWrite,
        data: Option<&Bytes>,
    ) -> Result<Written, StepError> {
        let data = data.filter(|_| self.wanted.borrow().read_choice.is_some());
        match write.outcome(deadline(Duration::MAX)).await {
            WriteOutcome::Applied(_, marker) => {
                if data.is_some() {
                    self.choice.wrote(marker.mzxid);
                }
                Ok(Written::Applied)
            }
            WriteOutcome::Failed(index, code) => Ok(Written::Refused(index, code)),
            WriteOutcome::Refused(Code::SESSION_EXPIRED) => Err(StepError::Ended),
            WriteOutcome::Refused(Code::THROTTLED) => Err(StepError::Busy),
            WriteOutcome::Refused(code) => Ok(Written::Refused(0, code)),
            WriteOutcome::NoMarker => Err(StepError::Retry),
            WriteOutcome::NotApplied(cause) => Err(cause.into()),
            WriteOutcome::Unknown(cause) => {
                if let Some(data) = data {
                    self.choice.may_have_written(data, generation.number);
                }
                Err(cause.into())
            }
        }
    }
}
