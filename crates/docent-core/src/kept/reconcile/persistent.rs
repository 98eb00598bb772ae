//! Nodes that belong to no session.

use super::super::armed::Armed;
use super::super::step_error::StepError;
use super::super::touch;
use super::Reconciler;
use super::read_node::Found;
use crate::guard::SessionGeneration;
use bytes::Bytes;
use docent_proto::Stat;
use std::sync::Arc;
use tokio::time::Instant;

impl Reconciler {
    /// Writes the wanted data to a node that belongs to no session. If other clients keep changing the data,
    /// it is restored after growing pauses, so that two clients that keep one node do not write in a tight
    /// loop.
    pub(super) async fn judge_persistent(
        &mut self,
        generation: &Arc<SessionGeneration>,
        wanted: &Bytes,
        stat: Stat,
        armed: Armed,
    ) -> Result<Found, StepError> {
        if armed.data() == wanted {
            self.foreign_writes.observe(&stat, true);
            return Ok(Found::Current(armed));
        }
        if self.foreign_writes.observe(&stat, false)
            && *self.progress.fulfilled.borrow() >= self.wanted.borrow().number
        {
            self.pause().await;
            return Ok(Found::Changed);
        }
        self.change(generation, self.set(wanted, stat.version), Some(wanted)).await
    }

    /// Touches a node with a time to live if the touch is due.
    pub(super) async fn touch_if_due(
        &mut self,
        generation: &Arc<SessionGeneration>,
    ) -> Result<(), StepError> {
        let Some(ttl) = self.lifetime.ttl() else { return Ok(()) };
        if self.touch.is_none_or(|due| due <= Instant::now()) {
            let acl = self.shared.acl(&touch::path(&self.full));
            let touched = touch::touch(generation, &self.full, acl, ttl).await?;
            touched.map_err(|code| self.refusal(code))?;
            self.touch = Some(Instant::now() + touch::pause(ttl));
        }
        Ok(())
    }
}
