//! Nodes that belong to no session.

use super::read_node::Found;
use super::{Reconciler, StepError};
use crate::guard::SessionGeneration;
use crate::kept::armed::Armed;
use crate::node::CreateMode;
use crate::session::context::send_until_answered;
use crate::session::{Cause, Lane};
use bytes::Bytes;
use docent_proto::{Code, Create, Request, Stat};
use std::sync::Arc;
use std::time::Duration;
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
        if armed.data == wanted {
            self.foreign_writes.observe(&stat, true);
            return Ok(Found::Current(armed));
        }
        if self.foreign_writes.observe(&stat, false)
            && self.progress.borrow().fulfilled >= self.wanted.borrow().number
        {
            self.pause().await;
            return Ok(Found::Changed);
        }
        self.change(generation, self.set(wanted, stat.version), Some(wanted)).await
    }

    /// Path of the child that keeps a node with a time to live alive, as named by Curator's
    /// `PersistentTtlNode`. Servers delete such a node if it had neither a change nor a child for that time,
    /// and changes of the child notify no watchers of the node.
    fn touch_path(&self) -> String {
        format!("{}/touch", self.full)
    }

    /// Writes the child of a node with a time to live if that is due, creating the child if necessary. A late
    /// write does no harm, because the child expires.
    pub(super) async fn touch_if_due(
        &mut self,
        generation: &Arc<SessionGeneration>,
    ) -> Result<(), StepError> {
        let Some(ttl) = self.mode.ttl().filter(|_| self.touch.is_none_or(|due| due <= Instant::now())) else {
            return Ok(());
        };
        let path = self.touch_path();
        let set = || Request::SetData { path: path.clone(), data: Some(Bytes::new()), version: -1 };
        let (mode, ttl_ms) = CreateMode::PersistentTtl(ttl).to_proto();
        let acl = self.shared.acl(&path);
        let create = || Request::Create(Create::new(path.clone(), Bytes::new(), acl.clone(), mode, ttl_ms));
        let refused = match refusal(generation, set).await? {
            Some(Code::NO_NODE) => refusal(generation, create).await?,
            refused => refused,
        };
        match refused {
            // The node itself may not exist, which its watch reports.
            None | Some(Code::NODE_EXISTS | Code::NO_NODE) => {
                // Two touches may fail before the child expires.
                self.touch = Some(Instant::now() + ttl / 3);
                Ok(())
            }
            Some(code) => Err(self.refusal(code)),
        }
    }

    /// Deletes the child of a node with a time to live, so that the node can be deleted.
    pub(super) async fn remove_touch(&self, generation: &SessionGeneration) -> Result<(), StepError> {
        // If the delete is applied late, the next touch re-creates the child.
        let delete = || Request::Delete { path: self.touch_path(), version: -1 };
        // If this delete is refused, so is the deletion of the node, which reports the error.
        refusal(generation, delete).await.map(drop)
    }
}

async fn refusal(
    generation: &SessionGeneration,
    request: impl Fn() -> Request,
) -> Result<Option<Code>, StepError> {
    match send_until_answered(generation, Lane::Call, request).await {
        Ok(reply) => Ok(reply.result.err()),
        Err(stop) => Err(Cause::from(stop).into()),
    }
}

/// Time without a change by another client after which a contest is over.
const CALM: Duration = Duration::from_secs(60);

/// Changes that other clients make to a node against the wanted state.
#[derive(Debug, Default)]
pub(super) struct ForeignWrites {
    last: Option<Instant>,
    /// Transactions that created and last changed the node, as of the last read.
    last_seen: Option<(i64, i64)>,
}

impl ForeignWrites {
    pub(super) fn is_calm(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() > CALM)
    }

    /// Records a read of the node. Returns true the first time that a change of the data by another client is
    /// seen.
    pub(super) fn observe(&mut self, stat: &Stat, is_as_desired: bool) -> bool {
        let version = (stat.czxid, stat.mzxid);
        let is_new = self.last_seen.replace(version).is_some_and(|seen| seen != version);
        let is_changed = is_new && !is_as_desired;
        if is_changed {
            self.last = Some(Instant::now());
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_another_client_is_reported_once() {
        let stat = |mzxid| Stat { czxid: 1, mzxid, ..Stat::default() };
        let mut foreign_writes = ForeignWrites::default();
        assert!(!foreign_writes.observe(&stat(1), false), "the first read is no change");
        assert!(!foreign_writes.observe(&stat(2), true) && foreign_writes.is_calm());
        assert!(foreign_writes.observe(&stat(3), false) && !foreign_writes.is_calm());
        assert!(!foreign_writes.observe(&stat(3), false), "the same change is reported once");
    }
}
