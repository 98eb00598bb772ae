//! Looks at the node of a `Reconciler`, and the exact writes that follow from what was found.

use super::super::KeptStatus;
use super::super::armed::Armed;
use super::super::exact::{self, Written};
use super::super::trouble::Trouble;
use super::super::witness;
use super::Reconciler;
use crate::cleanup::ExactWrite;
use crate::client::{create_parents_in, refused_parent};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::session::Lane;
use bytes::Bytes;
use docent_proto::{Code, Create, MultiOp, Request, Response, Stat};
use std::sync::Arc;

/// Result of a look at the node.
pub(super) enum Found {
    /// It is as wanted, and watched.
    AsWanted(Armed),
    /// Something was changed: look again.
    Changed,
    /// A node is there that must not be changed, and watched: somebody else's, or that of an older session of
    /// this client which nothing proves to be alive.
    Foreign(i64, Armed),
}

impl Reconciler {
    pub(super) async fn look(
        &mut self,
        generation: &Arc<SessionGeneration>,
        data: &Bytes,
    ) -> Result<Found, Trouble> {
        let mut known = self.armed.take().filter(|_| self.is_present(generation));
        // Nothing but the reason to look has come since the last look. A session that is being closed is
        // asked: it says when to stop.
        let is_same = |known: &mut Armed| known.data() == data && known.stands(generation).is_some();
        if !self.shared.closing.is_cancelled()
            && let Some(same) = known.take_if(is_same)
        {
            return Ok(Found::AsWanted(same));
        }
        // Write and read go out in one trip. The read decides, for it shows the owner of the node that is
        // there now and leaves a watch on it. A node that was present in this session needs no create: if it
        // is gone, the read says so, and the next look creates it.
        let (create, set) = match &mut known {
            Some(known) => {
                let set = self.set(data, known.version());
                (None, exact::submit_known(&self.shared, generation, known, set).await?)
            }
            None if self.is_present(generation) => (None, None),
            None => (Some(self.submit(generation, [MultiOp::Create(self.create(data))]).await?), None),
        };
        let losses = generation.session.link().borrow().losses;
        let read =
            generation.session.submit(Request::GetData { path: self.full.clone(), watch: true }, Lane::Call);
        // The server's watch stays for the read that is on its way.
        drop(known);
        if let Some(set) = set {
            // Where it is refused, the read shows why.
            exact::written(set).await?;
        }
        let created = match create {
            Some(create) => Some(exact::written(create).await?),
            None => None,
        };
        let read = read.await.answer()?;
        match (read.result, read.watch) {
            (Ok(Response::Data { data: found, stat }), Some(watch)) => {
                let armed = Armed::new(generation, losses, found.as_ref(), data, &stat, watch);
                self.judge(generation, data, stat, armed).await
            }
            (Err(Code::NO_NODE), _) => match created {
                // Not there although a create was answered: a parent is missing, or the code of the create is
                // the reason. After a success or `NODE_EXISTS` somebody deleted the node between create and
                // read: look again.
                Some(Written::Refused(_, Code::NO_NODE)) => self.make_parents(generation).await,
                Some(Written::Refused(_, code)) if code != Code::NODE_EXISTS => Err(self.refusal(code)),
                created => {
                    if created.is_none() {
                        self.told.deleted();
                    }
                    self.tell(KeptStatus::Pending);
                    Ok(Found::Changed)
                }
            },
            (Err(code), _) => Err(self.refusal(code)),
            (Ok(_), _) => Err(Trouble::Busy),
        }
    }

    /// Submits `ops` as an exact write.
    pub(super) async fn submit(
        &self,
        generation: &Arc<SessionGeneration>,
        ops: impl IntoIterator<Item = MultiOp>,
    ) -> Result<ExactWrite, Trouble> {
        exact::submit(&self.shared, generation, &self.full, ops).await
    }

    pub(super) fn create(&self, data: &Bytes) -> Create {
        let (mode, ttl) = self.life.mode().to_proto();
        Create::new(self.full.clone(), data.clone(), self.shared.acl(&self.full), mode, ttl)
    }

    pub(super) async fn make_parents(&self, generation: &Arc<SessionGeneration>) -> Result<Found, Trouble> {
        let parents = create_parents_in(&self.shared, generation, &self.full, self.shared.config.parents);
        match refused_parent(&self.shared, "create", &self.full, parents).await {
            Some(error) if error.is_throttled() => Err(Trouble::Busy),
            Some(error) => Err(Trouble::Refused(error)),
            None => Ok(Found::Changed),
        }
    }

    /// Decides by the owner of the node that was found what may be done about it.
    pub(super) async fn judge(
        &mut self,
        generation: &Arc<SessionGeneration>,
        wanted: &Bytes,
        stat: Stat,
        armed: Armed,
    ) -> Result<Found, Trouble> {
        let owner = stat.ephemeral_owner;
        if !self.life.is_ephemeral() {
            return match owner {
                0 => self.judge_lasting(generation, wanted, stat, armed).await,
                owner => Ok(Found::Foreign(owner, armed)),
            };
        }
        let older = planted!(NoOwnerCheck) && self.shared.witness_of(owner).is_some();
        if owner == generation.session.id() || older {
            // A create whose reply was lost may not be counted yet.
            generation.session.owns(&self.full);
            if armed.data() == wanted {
                return Ok(Found::AsWanted(armed));
            }
            return self.change_known(generation, armed, self.set(wanted, stat.version)).await;
        }
        // A persistent node does not go with any session: there is nothing to wait for.
        if owner == 0 {
            let error = Error::new(ErrorKind::NodeExists, "create").at(&self.path);
            return Err(Trouble::Refused(error.because("it is persistent")));
        }
        if planted!(BlindDelete) {
            return self.change(generation, self.delete(-1)).await;
        }
        if let Some(witness) = self.shared.witness_of(owner) {
            let ops = [self.delete(stat.version), MultiOp::Create(self.create(wanted))];
            return Ok(match self.replace(generation, witness, ops).await? {
                true => {
                    self.told.taken_over(owner);
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

    /// Applies `ops` to a node of an older session, whose witness is at `witness`. False when that session
    /// may have ended: the node goes with it, and the next node at the path may be somebody else's, with the
    /// version that ours had (decision 7).
    pub(super) async fn replace(
        &self,
        generation: &Arc<SessionGeneration>,
        witness: String,
        ops: impl IntoIterator<Item = MultiOp>,
    ) -> Result<bool, Trouble> {
        let write = self.submit(generation, witness::while_it_lives(witness, ops)).await?;
        match exact::written(write).await? {
            Written::Applied => {
                self.shared.notes.forget_nodes_at(&self.full);
                Ok(true)
            }
            // The check of the witness failed: the session has ended, or nothing proves that it has not.
            Written::Refused(0, _) => Ok(false),
            // Somebody else was faster: the next look shows the node that is there now.
            Written::Refused(_, Code::NO_NODE | Code::BAD_VERSION | Code::NODE_EXISTS) => Ok(true),
            Written::Refused(_, code) => Err(self.refusal(code)),
        }
    }

    /// Changes the node, if it is still as it was seen.
    async fn change_known(
        &self,
        generation: &Arc<SessionGeneration>,
        mut known: Armed,
        op: MultiOp,
    ) -> Result<Found, Trouble> {
        if !generation.session.orders_events() {
            // A watch proves nothing there: the write rests on the look just made.
            let write = exact::submit_on(&self.shared, generation, (known.losses(), None), op).await?;
            return self.changed(write).await;
        }
        match exact::submit_known(&self.shared, generation, &mut known, op).await? {
            Some(write) => self.changed(write).await,
            None => Ok(Found::Changed),
        }
    }

    pub(super) async fn change(
        &self,
        generation: &Arc<SessionGeneration>,
        op: MultiOp,
    ) -> Result<Found, Trouble> {
        let write = self.submit(generation, [op]).await?;
        self.changed(write).await
    }

    async fn changed(&self, write: ExactWrite) -> Result<Found, Trouble> {
        match exact::written(write).await? {
            // Somebody else was faster: the next look shows the node that is there now.
            Written::Applied | Written::Refused(_, Code::NO_NODE | Code::BAD_VERSION | Code::NODE_EXISTS) => {
                Ok(Found::Changed)
            }
            Written::Refused(_, code) => Err(self.refusal(code)),
        }
    }

    pub(super) fn refusal(&self, code: Code) -> Trouble {
        match code {
            Code::SESSION_EXPIRED => Trouble::Ended,
            Code::THROTTLED => Trouble::Busy,
            code => Trouble::Refused(Error::from_code(code, "create").at(&self.path)),
        }
    }
}
