//! What the servers of a session accept: requests in the form that they know, with the operations that they
//! are probed with (decision 31), and requests below their limit.

use super::Machine;
use crate::session::Cause;
use crate::session::abilities::Ability;
use crate::session::requests::{InFlight, Queued, frame_size};
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{
    Code, ConnectResponse, Create, CreateKind, CreateMode, MultiOp, MultiResult, Request, Response, Stat,
};
use std::time::Duration;

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

    /// Returns true if nothing more may be sent until a probe was answered. Sends the probe that is due.
    pub(super) fn waits_for_probe(&mut self, now: Timestamp, out: &mut Vec<u8>) -> bool {
        if self.probe.is_some() {
            return true;
        }
        let next = self.requests.queue.front().and_then(|queued| Ability::of(&queued.request));
        if next.is_none() && !self.settings.abilities.is_keeper() {
            return false;
        }
        let Some(ability) = self.settings.abilities.to_probe(next, self.settings.only_reads) else {
            return false;
        };
        // Nothing else is in flight, so that only the probe can be the reason of a hang-up.
        if self.requests.in_flight.is_empty() {
            self.probe = Some(ability);
            self.send(now, Queued::own(ability.probe()), out);
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

// Requests above the servers' limit. A server closes the link without a reply when it reads the length of
// such a frame. At first, the client cannot distinguish this from any other lost link.

/// Smallest size in bytes that is ever suspected: a server with a lower limit would be useless.
const LEAST: usize = 64 * 1024;

/// Number of consecutive links that servers close on a request before it counts as too large.
const ENOUGH: u32 = 2;

/// Suspicion that servers do not accept requests of a certain size.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    /// Size of the largest request that was answered in this session.
    taken: usize,
    /// Size of the suspected request.
    size: usize,
    /// Number of consecutive links that servers closed on that request; 0 if nothing is suspected.
    links: u32,
    /// Time at which the last of these links was closed.
    closed_at: Timestamp,
    /// Size of the smallest request that counts as too large, and the time at which a server last closed the
    /// link on such a request.
    too_large: Option<(usize, Timestamp)>,
}

impl Suspect {
    /// Records that a request of `size` bytes was answered.
    pub(super) fn answered(&mut self, size: usize) {
        self.taken = self.taken.max(size);
        if size >= self.size {
            self.links = 0;
        }
        self.too_large = self.too_large.filter(|(least, _)| size < *least);
    }

    /// Records that a server closed a link on which a request of `size` bytes was the largest.
    fn hung_up(&mut self, size: usize, now: Timestamp, timeout: Duration) {
        if size < LEAST || size <= self.taken || planted!(TooLargeForEver) {
            return;
        }
        // If a long time lies between two lost links, the cause is another one.
        let is_next = size == self.size && now.since(self.closed_at) < timeout;
        self.links = if is_next { self.links.saturating_add(1) } else { 1 };
        (self.size, self.closed_at) = (size, now);
        let fresh = self.too_large.filter(|(_, at)| now.since(*at) < timeout);
        // A size that already counted as too large needs no second link.
        let is_known_size = self.too_large.is_some_and(|(least, _)| size == least);
        if self.links >= ENOUGH || is_known_size || fresh.is_some_and(|(least, _)| size >= least) {
            self.too_large = Some((fresh.map_or(size, |(least, _)| least.min(size)), now));
        }
    }
}

impl Machine {
    /// Records that the server closed the link; called before [`disconnected`](Self::disconnected). Servers
    /// close the link immediately on a request that is too large, so a request sent long ago is not the
    /// cause.
    pub(in crate::session) fn hung_up(&mut self, now: Timestamp) {
        self.suspect_operation(now);
        let pulse = self.timing().pulse();
        let recent = |sent_at| now.since(sent_at) <= pulse;
        let sent = self.requests.in_flight.iter().filter(|in_flight| recent(in_flight.sent_at));
        if let Some(largest) = sent.map(|in_flight| in_flight.size).max() {
            self.suspect.hung_up(largest, now, self.timeout);
        }
    }

    /// Returns the cause for which `request` is not sent: servers closed the link on requests of its size.
    /// After a timeout such a request is tried again, in case the suspicion was wrong.
    pub(in crate::session) fn too_large_for_servers(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Option<Cause> {
        let (least, _) = self.suspect.too_large.filter(|(_, at)| now.since(*at) < self.timeout)?;
        // Apart from its paths and data, a request has only a few bytes for each part.
        if request.payload_len() < LEAST / 2 {
            return None;
        }
        let size = frame_size(request);
        (size >= least).then_some(Cause::TooLarge { size, limit: self.settings.outbound_limit })
    }
}
