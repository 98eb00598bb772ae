//! Reads of a `Reconciler`'s node, and the exact writes that follow from the result.

use super::exact::Written;
use super::{Reconciler, StepError};
use crate::cleanup::ExactWrite;
use crate::client::{create_parents, create_parents_below, refused_parent};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::kept::armed::Armed;
use crate::kept::{KeptStatus, witness};
use crate::session::Lane;
use bytes::Bytes;
use docent_proto::{Code, Create, MultiOp, Request, Response, Stat};
use std::sync::Arc;

/// Result of a read of the node.
pub(super) enum Found {
    /// The node is as wanted, and watched.
    Current(Armed),
    /// Something was changed: read again.
    Changed,
    /// The path is occupied by a watched node that must not be changed. It belongs to another client, or to
    /// an older session of this client that is not proven to be alive.
    Foreign(i64, Armed),
}

impl Reconciler {
    pub(super) async fn read_node(
        &mut self,
        generation: &Arc<SessionGeneration>,
        data: &Bytes,
    ) -> Result<Found, StepError> {
        let mut known = self.armed.take().filter(|_| self.is_present(generation));
        // Nothing happened since the last read. While the session is being closed, the servers are asked
        // anyway, because the session reports when to stop.
        let is_same =
            |known: &mut Armed| known.data == data && known.losses_if_unchanged(generation).is_some();
        if !self.shared.closing.is_cancelled()
            && let Some(same) = known.take_if(is_same)
        {
            return Ok(Found::Current(same));
        }
        // Write and read go out in one round trip. The read decides, because it shows the owner of the
        // current node and leaves a watch on it. A node that was present in this session needs no create: if
        // it was deleted, the read shows this and the next round creates it.
        let base =
            self.wanted.borrow().base.clone().filter(|_| known.is_none() && !self.is_present(generation));
        if let Some(base) = base
            && self.wait_for_base(generation, &base).await?
        {
            return Ok(Found::Changed);
        }
        let (create, set) = match &mut known {
            Some(known) => {
                let set = self.set(data, known.version);
                (None, self.submit_known(generation, known, set).await?)
            }
            None if self.is_present(generation) => (None, None),
            None => (Some(self.submit(generation, [MultiOp::Create(self.create(data))]).await?), None),
        };
        let losses = generation.session.link().borrow().losses;
        let read =
            generation.session.submit(Request::GetData { path: self.full.clone(), watch: true }, Lane::Call);
        // The server's watch remains for the read that is in flight.
        drop(known);
        if let Some(set) = set {
            // If the write is refused, the read shows the reason.
            self.written(generation, set, Some(data)).await?;
        }
        let created = match create {
            Some(create) => Some(self.written(generation, create, Some(data)).await?),
            None => None,
        };
        let read = read.await.answer()?;
        match (read.result, read.watch) {
            (Ok(Response::Data { data: found, stat }), Some(watch)) => {
                let armed = Armed::new(generation, losses, found.as_ref(), data, &stat, watch);
                self.judge(generation, data, stat, armed).await
            }
            (Err(Code::NO_NODE), _) => {
                match created {
                    // The node does not exist although the create was answered: a parent is missing, or the
                    // code of the create is the reason. After a success or `NODE_EXISTS`, another client
                    // deleted the node between create and read: read again.
                    Some(Written::Refused(_, Code::NO_NODE)) => self.create_missing_parents(generation).await,
                    Some(Written::Refused(_, code)) if code != Code::NODE_EXISTS => Err(self.refusal(code)),
                    created => {
                        // Another client deletes a node together with its base for good reason.
                        if created.is_none() && self.wanted.borrow().base.is_none() {
                            self.status_log.deleted();
                        }
                        self.set_status(KeptStatus::Pending);
                        Ok(Found::Changed)
                    }
                }
            }
            (Err(code), _) => Err(self.refusal(code)),
            (Ok(_), _) => Err(StepError::Busy),
        }
    }

    pub(super) fn create(&self, data: &Bytes) -> Create {
        let (mode, ttl) = self.mode.to_proto();
        Create::new(self.full.clone(), data.clone(), self.shared.acl(&self.full), mode, ttl)
    }

    pub(super) async fn create_missing_parents(
        &self,
        generation: &Arc<SessionGeneration>,
    ) -> Result<Found, StepError> {
        let base = self.wanted.borrow().base.clone();
        let parents = match &base {
            Some(base) => create_parents_below(&self.shared, generation, (base, &self.full), self.parents),
            None => create_parents(&self.shared, generation, &self.full, self.parents),
        };
        match refused_parent(&self.shared, "create", &self.full, parents).await {
            Some(error) if error.is_throttled() => Err(StepError::Busy),
            Some(error) => Err(StepError::Refused(error)),
            None => Ok(Found::Changed),
        }
    }

    /// If the base does not exist, waits for a change that may mean that it does, or of the request. Returns
    /// false if the base exists.
    async fn wait_for_base(
        &mut self,
        generation: &Arc<SessionGeneration>,
        base: &str,
    ) -> Result<bool, StepError> {
        let exists = Request::Exists { path: base.to_owned(), watch: true };
        let read = generation.session.submit(exists, Lane::Call).await.answer()?;
        match (read.result, read.watch) {
            (Err(Code::NO_NODE), Some(mut watch)) => {
                let error = Error::new(ErrorKind::NoNode, "create").at(&self.shared.namespace.relative(base));
                self.status_log.without_base(&self.shared.namespace.located(&error));
                let number = self.wanted.borrow().number;
                self.failed(error, Some(number));
                self.attempted(generation);
                self.wait(generation, &mut *watch, None).await;
                Ok(true)
            }
            (Err(Code::NO_NODE), None) => Err(StepError::Busy),
            (Err(code), _) => Err(self.refusal(code)),
            (Ok(_), _) => Ok(false),
        }
    }

    /// Decides what may be done, by the owner of the node that was found.
    pub(super) async fn judge(
        &mut self,
        generation: &Arc<SessionGeneration>,
        wanted: &Bytes,
        stat: Stat,
        armed: Armed,
    ) -> Result<Found, StepError> {
        let owner = stat.ephemeral_owner;
        if !self.is_ephemeral() {
            return match owner {
                0 => self.judge_persistent(generation, wanted, stat, armed).await,
                owner => Ok(Found::Foreign(owner, armed)),
            };
        }
        let older = planted!(NoOwnerCheck) && self.shared.witness_of(owner).is_some();
        if owner == generation.session.id() || older {
            // A create whose reply was lost may not have been counted yet.
            generation.session.owns(&self.full);
            if armed.data == wanted {
                return Ok(Found::Current(armed));
            }
            if self.follow_choice(generation, &armed.data, stat.mzxid) {
                return Ok(Found::Changed);
            }
            return self.change_known(generation, armed, wanted).await;
        }
        // A persistent node does not expire with a session, so there is nothing to wait for.
        if owner == 0 {
            let error = Error::new(ErrorKind::NodeExists, "create").at(&self.path);
            return Err(StepError::Refused(error.because("the node is persistent")));
        }
        if planted!(BlindDelete) {
            return self.change(generation, self.delete(-1), None).await;
        }
        if let Some(witness) = self.shared.witness_of(owner) {
            if self.follow_choice(generation, &armed.data, stat.mzxid) {
                return Ok(Found::Changed);
            }
            let ops = [self.delete(stat.version), MultiOp::Create(self.create(wanted))];
            return Ok(match self.replace(generation, witness, ops, Some(wanted)).await? {
                true => {
                    self.status_log.taken_over(owner);
                    Found::Changed
                }
                false => Found::Foreign(owner, armed),
            });
        }
        Ok(Found::Foreign(owner, armed))
    }

    pub(super) fn set(&self, data: &Bytes, version: i32) -> MultiOp {
        MultiOp::SetData { path: self.full.clone(), data: Some(data.clone()), version }
    }

    pub(super) fn delete(&self, version: i32) -> MultiOp {
        MultiOp::Delete { path: self.full.clone(), version }
    }

    /// Applies `ops` to a node of an older session, whose witness is at `witness`. Returns false if that
    /// session may have ended: its node is deleted with it, and the next node at the path may be another
    /// client's with the same version (decision 7).
    pub(super) async fn replace(
        &mut self,
        generation: &Arc<SessionGeneration>,
        witness: String,
        ops: impl IntoIterator<Item = MultiOp>,
        data: Option<&Bytes>,
    ) -> Result<bool, StepError> {
        let write = self.submit(generation, witness::while_session_lives(witness, ops)).await?;
        match self.written(generation, write, data).await? {
            Written::Applied => {
                self.shared.notes.forget_nodes_at(&self.full);
                Ok(true)
            }
            // The check of the witness failed: the session has ended, or is not proven to be alive.
            Written::Refused(0, _) => Ok(false),
            // Another client was faster: the next read shows the current node.
            Written::Refused(_, Code::NO_NODE | Code::BAD_VERSION | Code::NODE_EXISTS) => Ok(true),
            Written::Refused(_, code) => Err(self.refusal(code)),
        }
    }

    /// Writes the data into the node if it is still as it was read.
    async fn change_known(
        &mut self,
        generation: &Arc<SessionGeneration>,
        mut known: Armed,
        data: &Bytes,
    ) -> Result<Found, StepError> {
        let op = self.set(data, known.version);
        if !generation.session.orders_events() {
            // Watches prove nothing in such a session: the write relies on the read just made.
            let write = self.submit_on(generation, (known.losses, None), op).await?;
            return self.changed(generation, write, Some(data)).await;
        }
        match self.submit_known(generation, &mut known, op).await? {
            Some(write) => self.changed(generation, write, Some(data)).await,
            None => Ok(Found::Changed),
        }
    }

    pub(super) async fn change(
        &mut self,
        generation: &Arc<SessionGeneration>,
        op: MultiOp,
        data: Option<&Bytes>,
    ) -> Result<Found, StepError> {
        let write = self.submit(generation, [op]).await?;
        self.changed(generation, write, data).await
    }

    async fn changed(
        &mut self,
        generation: &SessionGeneration,
        write: ExactWrite,
        data: Option<&Bytes>,
    ) -> Result<Found, StepError> {
        match self.written(generation, write, data).await? {
            // Another client was faster: the next read shows the current node.
            Written::Applied | Written::Refused(_, Code::NO_NODE | Code::BAD_VERSION | Code::NODE_EXISTS) => {
                Ok(Found::Changed)
            }
            Written::Refused(_, code) => Err(self.refusal(code)),
        }
    }

    pub(super) fn refusal(&self, code: Code) -> StepError {
        match code {
            Code::SESSION_EXPIRED => StepError::Ended,
            Code::THROTTLED => StepError::Busy,
            code => StepError::Refused(Error::from_code(code, "create").at(&self.path)),
        }
    }
}
