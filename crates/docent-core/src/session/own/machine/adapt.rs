//! Requests in the form that the servers know, and the operations that they are probed with (decision 31).

use super::Machine;
use crate::session::abilities::Ability;
use crate::session::requests::{InFlight, Queued};
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{
    Code, ConnectResponse, Create, CreateKind, CreateMode, MultiOp, MultiResult, Request, Response, Stat,
};

/// A create whose reply contains no stat, because the servers have no `create2`.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Statless {
    /// The session that owns the node; 0 if it is not ephemeral.
    owner: i64,
    data_length: i32,
}

impl Statless {
    /// Returns the stat of the node right after its creation by the transaction of the reply. A server
    /// answers a write with the number of its transaction, so no other node at the path can have this
    /// stat. The times are not known and 0.
    fn stat(self, zxid: i64) -> Stat {
        Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ephemeral_owner: self.owner,
            data_length: self.data_length,
            ..Stat::default()
        }
    }
}

impl Machine {
    /// Records the answer to the handshake. A Keeper has neither passwords nor read-only servers.
    pub(super) fn greeted(&mut self, response: &ConnectResponse, now: Timestamp) {
        let is_blank = response.password.iter().all(|byte| *byte == 0);
        self.settings.abilities.greeted(is_blank && response.read_only.is_none(), now);
    }

    /// Returns the abilities that the servers were found to lack since the last call.
    pub(in crate::session) fn take_unlogged(&self) -> Vec<Ability> {
        self.settings.abilities.take_unlogged()
    }

    /// Returns true if nothing more may be sent until a probe was answered. Sends the probe that is due.
    pub(super) fn waits_for_probe(&mut self, now: Timestamp, out: &mut Vec<u8>) -> bool {
        if self.probe.is_some() {
            return true;
        }
        let next = self.requests.queue.front().and_then(|queued| Ability::of(&queued.request));
        let Some(ability) = self.settings.abilities.to_probe(next) else { return false };
        // Nothing else is in flight, so that only the probe can be the reason of a hang-up.
        if self.requests.in_flight.is_empty() {
            self.probe = Some(ability);
            let xid = self.next_xid();
            self.send(now, xid, Queued::own(ability.probe()), out);
        }
        true
    }

    /// Changes `request` to the form that the servers know. Returns the code of the refusal if they have no
    /// substitute.
    pub(super) fn adapt(&self, request: &mut Request) -> Result<Option<Statless>, Code> {
        if let Request::Multi(ops) = request {
            // In a multi no server returns the stat of such a node.
            for op in ops {
                if let MultiOp::Create(create @ Create { kind: CreateKind::WithStat, .. }) = op {
                    create.kind = CreateKind::Plain;
                }
            }
        }
        let is_missing = |ability: &Ability| self.settings.abilities.lacks(*ability);
        match (Ability::of(request).filter(is_missing), request) {
            (Some(Ability::Create2), Request::Create(create)) => {
                create.kind = CreateKind::Plain;
                Ok(Some(self.statless(create)))
            }
            // Caches learn from their watch that there is none.
            (Some(Ability::PersistentWatches) | None, _) => Ok(None),
            (Some(_), _) => Err(Code::UNIMPLEMENTED),
        }
    }

    fn statless(&self, create: &Create) -> Statless {
        let is_ephemeral = CreateMode::from_flags(create.flags).is_some_and(CreateMode::is_ephemeral);
        let length = create.data.as_ref().map_or(0, Bytes::len);
        Statless {
            owner: if is_ephemeral { self.id() } else { 0 },
            data_length: i32::try_from(length).unwrap_or(i32::MAX),
        }
    }

    /// Records what the reply to a request shows about the servers. Returns true if they refused an operation
    /// that has a substitute, so the request was certainly not applied and can be sent in another form.
    pub(super) fn learn(&mut self, answered: &InFlight, code: Code, zxid: i64, now: Timestamp) -> bool {
        let Some(ability) = answered.ability.filter(|ability| *ability != Ability::PersistentWatches) else {
            return false;
        };
        match code {
            Code::THROTTLED | Code::SESSION_EXPIRED | Code::SESSION_MOVED => {}
            // A server that knows nodes with a time to live, and does not permit them, names a transaction.
            Code::UNIMPLEMENTED if ability == Ability::Ttl && zxid >= 0 => {}
            Code::UNIMPLEMENTED => {
                self.settings.abilities.refused(ability, now);
                return ability == Ability::Create2;
            }
            _ => self.settings.abilities.answered(ability),
        }
        false
    }

    /// Records that the server closed the link: it may not know the first operation that it was never seen to
    /// answer.
    pub(super) fn suspect_operation(&self, now: Timestamp) {
        let pulse = self.timing().pulse();
        let abilities = &self.settings.abilities;
        let is_suspect = |sent: &&InFlight| {
            now.since(sent.sent_at) <= pulse
                && sent.ability.is_some_and(|one| one != Ability::PersistentWatches && !abilities.has(one))
        };
        if let Some(sent) = self.requests.in_flight.iter().find(is_suspect)
            && let Some(ability) = sent.ability
        {
            abilities.hung_up(ability, self.probe == Some(ability) && sent.id == 0, now);
        }
    }

    /// Completes a reply to a request that was sent in another form, and removes a Keeper's mark of
    /// containers, which is no session.
    pub(super) fn complete(&self, sent: Option<Statless>, zxid: i64, response: &mut Response) {
        if let (Some(sent), Response::Created { stat: stat @ None, .. }) = (sent, &mut *response) {
            *stat = Some(sent.stat(zxid));
        }
        if self.settings.abilities.is_keeper() {
            stats(response, |stat| {
                if stat.ephemeral_owner == i64::MIN {
                    stat.ephemeral_owner = 0;
                }
            });
        }
    }
}

fn stats(response: &mut Response, change: impl Fn(&mut Stat)) {
    match response {
        Response::Created { stat: Some(stat), .. }
        | Response::Stat(stat)
        | Response::Data { stat, .. }
        | Response::Acl { stat, .. }
        | Response::Children { stat: Some(stat), .. } => change(stat),
        Response::Multi(results) => {
            for result in results {
                match result {
                    MultiResult::Created { stat: Some(stat), .. }
                    | MultiResult::Set(stat)
                    | MultiResult::Data { stat, .. } => change(stat),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}
