//! Nodes that belong to no session.

use super::super::armed::Armed;
use super::super::touch;
use super::super::trouble::Trouble;
use super::Reconciler;
use super::look::Found;
use crate::guard::SessionGeneration;
use bytes::Bytes;
use docent_proto::Stat;
use std::sync::Arc;
use tokio::time::Instant;

impl Reconciler {
    /// Brings the data of a node that belongs to no session to what is wanted. Where others go on to change
    /// it that happens after growing pauses, so that two who keep one node do not write without end.
    pub(super) async fn judge_lasting(
        &mut self,
        generation: &Arc<SessionGeneration>,
        wanted: &Bytes,
        stat: Stat,
        armed: Armed,
    ) -> Result<Found, Trouble> {
        if armed.data() == wanted {
            self.contest.seen(&stat, true);
            return Ok(Found::AsWanted(armed));
        }
        if self.contest.seen(&stat, false) && *self.progress.fulfilled.borrow() >= self.wanted.borrow().number
        {
            self.pause().await;
            return Ok(Found::Changed);
        }
        self.change(generation, self.set(wanted, stat.version)).await
    }

    /// Touches a node with a time to live when that is due.
    pub(super) async fn touch_if_due(&mut self, generation: &Arc<SessionGeneration>) -> Result<(), Trouble> {
        let Some(ttl) = self.life.ttl() else { return Ok(()) };
        if self.touch.is_none_or(|due| due <= Instant::now()) {
            let acl = self.shared.acl(&touch::path(&self.full));
            let touched = touch::touch(generation, &self.full, acl, ttl).await?;
            touched.map_err(|code| self.refusal(code))?;
            self.touch = Some(Instant::now() + touch::pause(ttl));
        }
        Ok(())
    }
}
