//! ZooKeeper's client protocol as a pure state machine: no I/O and no clock of its own.
//!
//! In: the time, link up or down, bytes received, requests submitted and withdrawn. Out: bytes to write,
//! outcomes, fired watches, the state of the link and the next time it wants to be called.

mod inbound;
mod outbound;
mod oversize;
mod persistent;
mod suspect;
#[cfg(test)]
mod tests;
mod time;

pub(super) use persistent::handle;

#[cfg(feature = "zookeeper-client")]
pub(in crate::session) use inbound::{proves_session, verdict};

use super::persistent::{PersistentFires, PersistentWatches};
use super::support::PersistentSupport;
use super::watches::{Fires, WatchTable};
use crate::session::ephemerals::Ephemerals;
use crate::session::heard::Heard;
use crate::session::lease::Lease;
use crate::session::requests::{Finished, Requests, WatchRequest, check_size};
use crate::session::{
    Cause, Credentials, Lane, LinkState, Outcome, SessionCloser, SessionEnd, SessionSettings, Watch,
    WatchKind,
};
use crate::time::Timestamp;
use docent_proto::{Frames, Request};
use secrecy::SecretSlice;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use suspect::Suspect;
use tokio::sync::oneshot;
use tokio::time::Instant;

#[derive(Debug)]
pub(in crate::session) struct Machine {
    settings: SessionSettings,
    lease: Arc<Lease>,
    frames: Frames,
    /// Bytes of a reply that is too large which are still to come.
    to_skip: usize,
    phase: Phase,
    /// True once the server has answered the request to close.
    is_closed: bool,
    link: Link,
    losses: u64,
    /// State that [`link_change`](Self::link_change) returned last.
    last_published: LinkState,
    key: Option<SessionKey>,
    /// Smallest timeout granted so far, or the one to ask for.
    timeout: Duration,
    requests: Requests,
    suspect: Suspect,
    ephemerals: Ephemerals,
    /// The last look for ephemeral nodes that is under way, since a create was refused.
    doubts: Option<u64>,
    next_xid: i32,
    /// Set when credentials are due on a new link, before anything else.
    to_authenticate: bool,
    /// Requests that set watches again on a new link; they go before others.
    restore: VecDeque<Request>,
    /// Transaction as of which watches were set again, until the server has acknowledged all of them.
    restore_from: Option<i64>,
    /// Requests that set watches again and are not acknowledged.
    unrestored: usize,
    pings: VecDeque<Timestamp>,
    watches: WatchTable,
    persistent: PersistentWatches,
    support: PersistentSupport,
    /// False while it is to be told that the server of the link refused persistent watches.
    told_refusal: bool,
    /// Transaction up to which everything was told.
    last_zxid: i64,
    /// Newest transaction of which anything was told: a new link must not be to a server behind it.
    seen_zxid: i64,
    last_sent: Timestamp,
    /// Send times of the requests that the servers have heard of over this link.
    heard: Heard,
    /// Time at which a reply, or a part of one, came last.
    last_received: Timestamp,
    /// Send time of the newest request that was answered, be it a ping or a read.
    last_answered: Timestamp,
    /// Time at which a link that had been up was lost.
    down_since: Timestamp,
    deliveries: Deliveries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// No calls are taken.
    Draining,
    /// The request to close is written once nothing waits before it.
    Closing {
        written: bool,
    },
    Ended(SessionEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    Handshake {
        sent_at: Timestamp,
        until: Timestamp,
    },
    /// The session is attached; its credentials are under way. Nothing else is sent before they are accepted.
    Authenticating {
        until: Timestamp,
        unanswered: usize,
    },
    Attached,
}

#[derive(Debug)]
struct SessionKey {
    id: i64,
    /// Secret that is enough to take the session over.
    password: SecretSlice<u8>,
}

/// Outcomes and events to deliver once the machine is no longer locked: dropping one may call back into the
/// machine.
#[derive(Debug, Default)]
pub(in crate::session) struct Deliveries {
    finished: Vec<Finished>,
    fires: Fires,
    persistent: PersistentFires,
}

impl Deliveries {
    pub(in crate::session) fn deliver(&mut self) {
        // An event that came before a reply must be there before the reply is: whoever takes the reply for
        // news may look at once whether its watch has fired.
        for (subscriber, news) in self.persistent.drain(..) {
            let _ = subscriber.send(news);
        }
        for (subscriber, fired) in self.fires.drain(..) {
            let _ = subscriber.send(fired);
        }
        for (done, outcome) in self.finished.drain(..) {
            // Nobody waits for a request whose future was dropped.
            let _ = done.send(outcome);
        }
    }
}

impl Machine {
    pub(in crate::session) fn new(settings: SessionSettings, lease: Arc<Lease>, now: Timestamp) -> Self {
        Self {
            heard: Heard::new(lease.timing().relay()),
            frames: Frames::new(settings.inbound_limit),
            to_skip: 0,
            timeout: settings.timeout,
            last_zxid: settings.last_zxid,
            seen_zxid: settings.last_zxid,
            lease,
            phase: Phase::Open,
            is_closed: false,
            link: Link::Down,
            losses: 0,
            last_published: LinkState { up: false, losses: 0 },
            key: None,
            requests: Requests::default(),
            suspect: Suspect::default(),
            ephemerals: Ephemerals::new(settings.ephemeral_limit),
            doubts: None,
            settings,
            next_xid: 1,
            to_authenticate: false,
            restore: VecDeque::new(),
            restore_from: None,
            unrestored: 0,
            pings: VecDeque::new(),
            watches: WatchTable::default(),
            persistent: PersistentWatches::default(),
            support: PersistentSupport::default(),
            told_refusal: true,
            last_sent: now,
            last_received: now,
            last_answered: now,
            down_since: now,
            deliveries: Deliveries::default(),
        }
    }

    pub(in crate::session) fn submit(
        &mut self,
        request: Request,
        lane: Lane,
        deadline: Option<Instant>,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), Cause> {
        match self.phase {
            Phase::Open => {}
            // Deletes of our own nodes are still taken, so that a client that closes leaves none behind.
            Phase::Draining if !lane.is_call() => {}
            Phase::Draining | Phase::Closing { .. } => return Err(Cause::Ended(SessionEnd::Closed)),
            Phase::Ended(end) => return Err(Cause::Ended(end)),
        }
        if lane.is_call() {
            if self.requests.len() >= self.settings.queue_limit {
                return Err(Cause::QueueFull);
            }
            check_size(&request, self.settings.outbound_limit)?;
        }
        let (done, outcome) = oneshot::channel();
        let id = self.requests.push(request, lane, deadline, Some(done));
        Ok((id, outcome))
    }

    /// As [`submit`](Self::submit), but only with `losses` lost links, and before `watch` fires or the link
    /// tells of a change of one of the request's nodes.
    pub(in crate::session) fn submit_on(
        &mut self,
        request: Request,
        lane: Lane,
        losses: u64,
        watch: Option<&Watch>,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), Cause> {
        // A watch may have fired a moment ago, with nobody notified of it yet.
        let stands = |watch: &Watch| watch.registration.as_ref().is_some_and(|one| self.watches.waits(one));
        if losses != self.losses || !watch.is_none_or(stands) {
            return Err(Cause::LinkLost);
        }
        let (id, outcome) = self.submit(request, lane, None)?;
        self.requests.tie(id);
        Ok((id, outcome))
    }

    /// Time of the next call of [`expire`](Self::expire).
    pub(in crate::session) fn next_expiry(&self) -> Option<Instant> {
        self.requests.next_expiry()
    }

    /// Ends requests whose deadline has come.
    pub(in crate::session) fn expire(&mut self, now: Instant) {
        self.requests.expire(now, &mut self.deliveries.finished);
    }

    /// Takes note of an ephemeral node that was made although no answer said so.
    pub(in crate::session) fn owns(&mut self, path: &str) {
        self.ephemerals.owns(path);
    }

    pub(in crate::session) fn owned(&self) -> Vec<String> {
        self.ephemerals.paths()
    }

    /// True when a quorum of servers closed the session, or it was never opened. That a server refuses to
    /// attach it proves neither (decision 25).
    pub(in crate::session) fn is_gone(&self) -> bool {
        self.is_closed || self.key.is_none()
    }

    pub(in crate::session) fn withdraw(&mut self, id: u64) -> bool {
        self.requests.withdraw(id)
    }

    pub(in crate::session) fn unregister(&mut self, id: u64, path: &str, kind: WatchKind) {
        let kind = match kind {
            WatchKind::Persistent => return self.unregister_persistent(id, path),
            kind => kind,
        };
        let forgotten = self.watches.unregister(id, path, kind);
        self.remove_forsaken();
        // On a link that is down there is no watch: it just is not set again. Where a read on its way asks
        // for one in the same table, its removal would take that away, too. So it would a persistent one,
        // which tells of data: in the table of children that one is of no use.
        if forgotten && self.link != Link::Down && !self.requests.will_watch(path, kind) {
            let kind = match kind {
                WatchKind::Data | WatchKind::Exist if self.persistent.concerns(path) => return,
                WatchKind::Data | WatchKind::Exist => docent_proto::WatchKind::Data,
                WatchKind::Child | WatchKind::Persistent => docent_proto::WatchKind::Children,
            };
            self.requests.push(
                Request::RemoveWatches { path: path.to_owned(), kind },
                Lane::Cleanup,
                None,
                None,
            );
        }
    }

    pub(in crate::session) fn drain(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
            self.requests.end_calls(SessionEnd::Closed, &mut self.deliveries.finished);
            self.watches.end(SessionEnd::Closed, &mut self.deliveries.fires);
            self.persistent.end(SessionEnd::Closed, &mut self.deliveries.persistent);
        }
    }

    pub(in crate::session) fn close(&mut self) {
        self.drain();
        if self.phase == Phase::Draining {
            self.phase = Phase::Closing { written: false };
            if self.key.is_none() && self.link == Link::Down {
                self.end(SessionEnd::Closed);
            }
        }
    }

    /// True when the server of the link has writes that it has not answered.
    pub(in crate::session) fn has_unanswered_writes(&self) -> bool {
        self.requests.has_unanswered_writes()
    }

    pub(in crate::session) fn disconnected(&mut self, now: Timestamp) {
        // An attempt that did not attach the session is no lost link, and gives the session no more time.
        if self.link == Link::Attached {
            self.losses += 1;
            self.down_since = now;
        }
        self.persistent_link_lost(now);
        self.link = Link::Down;
        self.to_authenticate = false;
        self.to_skip = 0;
        self.restore.clear();
        self.pings.clear();
        self.ephemerals.link_lost();
        self.doubts = None;
        self.unsubscribe_unanswered();
        self.requests.link_lost(&mut self.deliveries.finished);
        if let Phase::Closing { written } = &mut self.phase {
            match self.key {
                None => self.end(SessionEnd::Closed),
                Some(_) if *written && planted!(CloseNotRepeated) => self.end(SessionEnd::Closed),
                // The request to close may not have arrived: the session is attached again to send another.
                Some(_) => *written = false,
            }
        }
    }

    /// Takes back the subscribers of watches whose request the lost link did not answer: nothing shows that
    /// the server has set them, or told what had changed by then.
    fn unsubscribe_unanswered(&mut self) {
        for in_flight in &mut self.requests.in_flight {
            let subscribers = mem::take(&mut in_flight.subscribers);
            let paths = in_flight.watch.iter().flat_map(WatchRequest::paths);
            for (path, (id, _)) in paths.zip(subscribers) {
                self.watches.unregister(id, path, WatchKind::Data);
            }
        }
    }

    /// Ends the session. A request without an answer will not get one any more.
    pub(in crate::session) fn end(&mut self, end: SessionEnd) {
        if self.ended().is_some() {
            return;
        }
        self.phase = Phase::Ended(end);
        self.lease.end(end);
        self.requests.end(end, &mut self.deliveries.finished);
        self.requests.in_flight.clear();
        self.watches.end(end, &mut self.deliveries.fires);
        self.persistent.end(end, &mut self.deliveries.persistent);
    }

    pub(in crate::session) fn ended(&self) -> Option<SessionEnd> {
        match self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Takes the deliveries, and leaves `empty` ones for the next time.
    pub(in crate::session) fn swap_deliveries(&mut self, empty: &mut Deliveries) {
        mem::swap(&mut self.deliveries, empty);
    }

    pub(in crate::session) fn link_state(&self) -> LinkState {
        LinkState { up: self.link == Link::Attached, losses: self.losses }
    }

    pub(in crate::session) fn closer(&self) -> Option<SessionCloser> {
        let refused = self.ended() == Some(SessionEnd::AuthFailed);
        self.key.as_ref().map(|key| SessionCloser {
            session_id: key.id,
            password: key.password.clone(),
            timeout: self.timeout,
            credentials: if refused { Vec::new() } else { self.settings.credentials.clone() },
        })
    }

    pub(in crate::session) fn credentials(&self) -> &[Credentials] {
        &self.settings.credentials
    }

    /// The state of the link, if it is another than the last time.
    pub(in crate::session) fn link_change(&mut self) -> Option<LinkState> {
        let state = self.link_state();
        (mem::replace(&mut self.last_published, state) != state).then_some(state)
    }

    pub(in crate::session) fn id(&self) -> i64 {
        self.key.as_ref().map_or(0, |key| key.id)
    }

    pub(in crate::session) fn seen_zxid(&self) -> i64 {
        self.seen_zxid
    }

    /// The timeout granted, or the one asked for.
    pub(in crate::session) fn timeout(&self) -> Duration {
        self.timeout
    }
}
