//! Nodes that are wanted no more.

use super::super::armed::Armed;
use super::super::exact::{self, Written};
use super::super::touch;
use super::super::trouble::Trouble;
use super::Reconciler;
use crate::cleanup::ExactWrite;
use crate::guard::SessionGeneration;
use crate::session::lookup;
use docent_proto::Code;
use std::sync::Arc;

impl Reconciler {
    /// Deletes the node if it is ours. True when it is gone, or somebody else's.
    pub(super) async fn be_absent(&mut self, generation: &Arc<SessionGeneration>) -> Result<bool, Trouble> {
        if planted!(DeletedUnseen) {
            let delete = self.submit(generation, [self.delete(-1)]).await?;
            return self.deleted(delete).await.map(|_| true);
        }
        // Until the end: its own deletion uses the watch up.
        let mut known = self.armed.take().filter(|_| self.is_present(generation));
        if let Some(known) = known.as_mut().filter(|known| self.life.is_ephemeral() && known.is_told_apart())
            && !self.shared.kept.has_successor(&self.full)
        {
            let delete = self.delete(known.version());
            if let Some(delete) = exact::submit_known(&self.shared, generation, known, delete).await? {
                return self.deleted(delete).await;
            }
        }
        // No earlier create is on its way: each was answered or fenced out (decision 11). So the leader's
        // tree decides.
        let losses = generation.session.link().borrow().losses;
        let Some(stat) = lookup::stat(generation, &self.full).await? else {
            self.shared.notes.forget_nodes_at(&self.full);
            return Ok(true);
        };
        // A successor that came during the look wants the node, which is kept for it without being gone in
        // between.
        if self.shared.kept.has_successor(&self.full) {
            return Ok(false);
        }
        let owner = stat.ephemeral_owner;
        if let Some(witness) = self.shared.witness_of(owner) {
            let replaced = self.replace(generation, witness, [self.delete(stat.version)]).await?;
            // Where the older session may have ended its node goes with it: look again after a pause.
            return if replaced { Ok(false) } else { Err(Trouble::Busy) };
        }
        if owner != self.life.owner(generation.session.id()) {
            self.shared.notes.forget_nodes_before(&self.full, owner);
            return Ok(true);
        }
        if self.life.ttl().is_some() && stat.num_children > 0 {
            touch::remove(generation, &self.full).await?;
        }
        let watch = known.as_ref().and_then(Armed::watch);
        let delete = self.delete(stat.version);
        let delete = exact::submit_on(&self.shared, generation, (losses, watch), delete).await?;
        self.deleted(delete).await
    }

    /// Waits for the outcome of the node's deletion. True when it is gone; else it may be another one by now.
    async fn deleted(&self, delete: ExactWrite) -> Result<bool, Trouble> {
        match exact::written(delete).await? {
            Written::Applied => {
                self.shared.notes.forget_nodes_at(&self.full);
                Ok(true)
            }
            Written::Refused(_, Code::NO_NODE | Code::BAD_VERSION) => Ok(false),
            Written::Refused(_, code) => Err(self.refusal(code)),
        }
    }
}
