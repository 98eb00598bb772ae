//! Removal of nodes that are no longer wanted.

use super::exact::Written;
use super::{Reconciler, StepError};
use crate::cleanup::ExactWrite;
use crate::guard::SessionGeneration;
use crate::session::lookup;
use docent_proto::Code;
use std::sync::Arc;

impl Reconciler {
    /// Deletes the node if it is ours. Returns true if it is deleted, or if the node at the path belongs to
    /// another client.
    pub(super) async fn be_absent(&mut self, generation: &Arc<SessionGeneration>) -> Result<bool, StepError> {
        if planted!(DeletedUnseen) {
            let delete = self.submit(generation, [self.delete(-1)]).await?;
            return self.deleted(generation, delete).await.map(|_| true);
        }
        // Held until the end of this method, because the deletion itself makes the watch fire.
        let mut known = self.armed.take().filter(|_| self.is_present(generation));
        if let Some(known) = known.as_mut().filter(|known| self.is_ephemeral() && known.is_distinguishable())
            && !self.shared.kept.has_successor(&self.full)
        {
            let delete = self.delete(known.version);
            if let Some(delete) = self.submit_known(generation, known, delete).await? {
                return self.deleted(generation, delete).await;
            }
        }
        // No earlier create is in flight: each was answered or fenced out (decision 11). Therefore the
        // leader's tree decides.
        let Some(found) = lookup::watched(generation, &self.full).await? else {
            self.shared.notes.forget_nodes_at(&self.full);
            return Ok(true);
        };
        // A successor that arrived during the read wants the node. The node is kept for it without a gap.
        if self.shared.kept.has_successor(&self.full) {
            return Ok(false);
        }
        let stat = found.stat;
        let owner = stat.ephemeral_owner;
        if let Some(witness) = self.shared.witness_of(owner) {
            let replaced = self.replace(generation, witness, [self.delete(stat.version)], None).await?;
            // If the older session may have ended, its node is deleted with it: read again after a pause.
            return if replaced { Ok(false) } else { Err(StepError::Busy) };
        }
        let own = if self.is_ephemeral() { generation.session.id() } else { 0 };
        if owner != own {
            self.shared.notes.forget_nodes_before(&self.full, owner);
            return Ok(true);
        }
        if self.mode.ttl().is_some() && stat.num_children > 0 {
            self.remove_touch(generation).await?;
        }
        let delete = self.submit_on(generation, found.since(), self.delete(stat.version)).await?;
        self.deleted(generation, delete).await
    }

    /// Waits for the outcome of the node's deletion. Returns true if the node is deleted; otherwise it may be
    /// a different node by now.
    async fn deleted(
        &mut self,
        generation: &SessionGeneration,
        delete: ExactWrite,
    ) -> Result<bool, StepError> {
        match self.written(generation, delete, None).await? {
            Written::Applied => {
                self.shared.notes.forget_nodes_at(&self.full);
                Ok(true)
            }
            Written::Refused(_, Code::NO_NODE | Code::BAD_VERSION) => Ok(false),
            Written::Refused(_, code) => Err(self.refusal(code)),
        }
    }
}
