//! ZooKeeper's client protocol as a pure state machine, without I/O and without a clock.
//!
//! Input: the time, link up or down, bytes received, requests submitted and withdrawn. Output: bytes to
//! write, outcomes, fired watches, the state of the link, and the time of the next call.

mod adapt;
mod authentication;
mod inbound;
mod outbound;
mod persistent;
#[cfg(test)]
mod tests;

pub(in crate::session) use adapt::Statless;
#[cfg(feature = "zookeeper-client")]
pub(in crate::session) use inbound::{proves_session, verdict};

use super::watches::{Fires, PersistentFires, PersistentWatches, WatchTable};
use crate::session::abilities::Ability;
use crate::session::ephemerals::Ephemerals;
use crate::session::lease::{LeaderContact, Lease, Timing};
use crate::session::requests::{Finished, OWN, Phase, Requests, WatchRequest, admit};
use crate::session::sasl::BegunSasl;
use crate::session::{
    Cause, Lane, LinkError, LinkState, Outcome, PersistentSignal, Reply, SessionCloser, SessionEnd,
    SessionSettings, Watch, WatchKind,
};
use crate::time::Timestamp;
use adapt::Suspect;
use authentication::SaslInFlight;
use docent_proto::{Code, Frames, Request};
use secrecy::SecretSlice;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Time after which a client leaves a server that has lost its quorum, because others may have one.
const SEARCH: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(in crate::session) struct Machine {
    pub(super) settings: SessionSettings,
    lease: Arc<Lease>,
    frames: Frames,
    /// Number of bytes still to come of a reply that is too large.
    to_skip: usize,
    phase: Phase,
    /// True once the request to close was written on this link.
    is_close_written: bool,
    /// True once the server has answered the request to close.
    is_closed: bool,
    link: Link,
    /// True if the next handshake also accepts a server that has lost its quorum.
    asks_read_only: bool,
    /// Time at which a server that has lost its quorum accepted the link; `None` for any other server.
    read_only_since: Option<Timestamp>,
    losses: u64,
    /// State that [`link_change`](Self::link_change) returned last.
    last_published: LinkState,
    key: Option<SessionKey>,
    /// Smallest timeout granted so far, or the timeout to request.
    pub(super) timeout: Duration,
    pub(super) requests: Requests,
    suspect: Suspect,
    pub(super) ephemerals: Ephemerals,
    /// Id of the last pending check of ephemeral nodes, started because a create was refused.
    doubts: Option<u64>,
    next_xid: i32,
    /// True if credentials must be sent on a new link, before anything else.
    to_authenticate: bool,
    /// SASL authentication of the link, until the server has accepted it.
    sasl: Option<Box<SaslInFlight>>,
    /// SASL authentication for the next link to continue.
    pub(super) begun_sasl: Option<Box<BegunSasl>>,
    /// Why the servers refused the client.
    refusal: Option<Box<LinkError>>,
    /// Requests that restore watches on a new link; they are sent before others.
    restore: VecDeque<Request>,
    /// Transaction as of which watches were restored, until the server has acknowledged all of them.
    restore_from: Option<i64>,
    /// Number of requests that restore watches and are not acknowledged.
    unrestored: usize,
    pings: VecDeque<Timestamp>,
    watches: WatchTable,
    persistent: PersistentWatches,
    /// Ability whose probe is in flight; nothing else is sent meanwhile.
    probe: Option<Ability>,
    /// Transaction up to which all changes were delivered.
    last_zxid: i64,
    /// Newest transaction that was seen at all. A new link must not be to a server that is behind it.
    seen_zxid: i64,
    last_sent: Timestamp,
    /// Send times of the requests that the servers received over this link.
    leader_contact: LeaderContact,
    /// Time at which a reply, or a part of one, last arrived.
    last_received: Timestamp,
    /// Send time of the newest request that was answered, including pings and reads.
    last_answered: Timestamp,
    /// Time at which an attached link was last lost.
    down_since: Timestamp,
    deliveries: Deliveries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    Handshake {
        sent_at: Timestamp,
        until: Timestamp,
    },
    /// The session is attached, and its credentials or SASL are in flight. Nothing else is sent before they
    /// are accepted.
    Authenticating {
        until: Timestamp,
        /// Number of credentials without a reply.
        unanswered: usize,
    },
    Attached,
}

#[derive(Debug)]
struct SessionKey {
    id: i64,
    /// Secret that is sufficient to take over the session.
    password: SecretSlice<u8>,
}

/// Outcomes and events to deliver once the machine is no longer locked. Dropping one of them may call back
/// into the machine.
#[derive(Debug, Default)]
pub(in crate::session) struct Deliveries {
    finished: Vec<Finished>,
    fires: Fires,
    persistent: PersistentFires,
}

impl Deliveries {
    pub(in crate::session) fn deliver(&mut self) {
        // An event that arrived before a reply must be delivered before that reply, because the receiver of
        // the reply may immediately check whether its watch has fired.
        for (subscriber, signal) in self.persistent.drain(..) {
            let _ = subscriber.send(signal);
        }
        for (subscriber, fired) in self.fires.drain(..) {
            let _ = subscriber.send(fired);
        }
        for (done, outcome) in self.finished.drain(..) {
            // A request whose future was dropped has no receiver.
            let _ = done.send(outcome);
        }
    }
}

impl Machine {
    pub(in crate::session) fn new(settings: SessionSettings, lease: Arc<Lease>, now: Timestamp) -> Self {
        Self {
            leader_contact: LeaderContact::new(lease.timing().relay()),
            frames: Frames::new(settings.inbound_limit),
            to_skip: 0,
            timeout: settings.timeout,
            last_zxid: settings.last_zxid,
            seen_zxid: settings.last_zxid,
            lease,
            phase: Phase::Open,
            is_close_written: false,
            is_closed: false,
            link: Link::Down,
            asks_read_only: false,
            read_only_since: None,
            losses: 0,
            last_published: LinkState::DOWN,
            key: None,
            requests: Requests::default(),
            suspect: Suspect::default(),
            ephemerals: Ephemerals::new(settings.ephemeral_limit),
            doubts: None,
            settings,
            next_xid: 1,
            to_authenticate: false,
            sasl: None,
            begun_sasl: None,
            refusal: None,
            restore: VecDeque::new(),
            restore_from: None,
            unrestored: 0,
            pings: VecDeque::new(),
            watches: WatchTable::default(),
            persistent: PersistentWatches::default(),
            probe: None,
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
        admit(&request, lane, self.phase, self.requests.len(), &self.settings)?;
        let (done, outcome) = oneshot::channel();
        if self.settings.only_reads && request.is_write() {
            let reply = Reply::new(Err(Code::NOT_READ_ONLY), self.last_zxid);
            // Nobody waits for it yet, so this calls nobody back.
            let _ = done.send(Outcome::Reply(reply));
            return Ok((OWN, outcome));
        }
        let id = self.requests.push(request, lane, deadline, Some(done));
        Ok((id, outcome))
    }

    /// Like [`submit`](Self::submit), but only while the number of lost links is `losses`, and before `watch`
    /// fires or the link reports a change of one of the request's nodes.
    pub(in crate::session) fn submit_on(
        &mut self,
        request: Request,
        lane: Lane,
        losses: u64,
        watch: Option<&Watch>,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), Cause> {
        // A watch may have fired a moment ago, before its subscriber was notified.
        let is_registered =
            |watch: &Watch| watch.registration.as_ref().is_some_and(|one| self.watches.waits(one));
        if losses != self.losses || !watch.is_none_or(is_registered) {
            return Err(Cause::LinkLost);
        }
        let (id, outcome) = self.submit(request, lane, None)?;
        self.requests.tie(id);
        Ok((id, outcome))
    }

    /// Ends requests whose deadline has passed.
    pub(in crate::session) fn expire(&mut self, now: Instant) {
        self.requests.expire(now, &mut self.deliveries.finished);
    }

    /// Returns true if a quorum of servers closed the session, or if it was never opened. A server's refusal
    /// to attach the session proves neither (decision 25).
    pub(in crate::session) fn has_certainly_ended(&self) -> bool {
        self.is_closed || self.key.is_none()
    }

    pub(in crate::session) fn unregister(&mut self, id: u64, path: &str, kind: WatchKind) {
        let kind = match kind {
            WatchKind::Persistent => return self.unregister_persistent(id, path),
            kind => kind,
        };
        let forgotten = self.watches.unregister(id, path, kind);
        self.remove_forsaken();
        // On a link that is down there is no watch to remove; it is simply not restored. If a read in flight
        // asks for a watch in the same table, the removal would delete that watch too. The same holds for a
        // persistent watch in the data table; in the table of children a persistent watch is of no use.
        if forgotten
            && self.link != Link::Down
            && !self.requests.will_watch(path, kind)
            && !self.settings.abilities.lacks(Ability::RemoveWatches)
        {
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
            self.requests.end(SessionEnd::Closed, Lane::is_call, &mut self.deliveries.finished);
            self.watches.end(SessionEnd::Closed, &mut self.deliveries.fires);
            self.persistent
                .end(&PersistentSignal::Ended(SessionEnd::Closed), &mut self.deliveries.persistent);
        }
    }

    pub(in crate::session) fn close(&mut self) {
        self.drain();
        if self.phase == Phase::Draining {
            self.phase = Phase::Closing;
            if self.key.is_none() && self.link == Link::Down {
                self.end(SessionEnd::Closed);
            }
        }
    }

    pub(in crate::session) fn disconnected(&mut self, now: Timestamp) {
        // An attempt that did not attach the session is not a lost link, and does not extend the session's
        // time.
        let is_keeper = self.settings.abilities.is_keeper();
        let was_attached = matches!(self.link, Link::Attached | Link::Authenticating { .. });
        let is_reader =
            self.settings.only_reads && (self.link == Link::Attached || self.read_only_since.is_some());
        if is_keeper && self.probe == Some(Ability::Containers) {
            // A Keeper is probed for containers before anything else is sent in a session: the next link
            // opens another one.
            self.key = None;
        } else if self.link == Link::Attached {
            self.losses += 1;
            self.down_since = now;
        }
        self.persistent_link_lost(now);
        self.probe = None;
        self.link = Link::Down;
        self.read_only_since = None;
        self.to_authenticate = false;
        self.sasl = None;
        self.begun_sasl = None;
        self.to_skip = 0;
        self.restore.clear();
        self.pings.clear();
        self.ephemerals.link_lost();
        self.doubts = None;
        self.unsubscribe_unanswered();
        self.requests.link_lost(&mut self.deliveries.finished);
        if self.phase == Phase::Closing
            && (self.key.is_none() || self.is_close_written && planted!(CloseNotRepeated))
        {
            self.end(SessionEnd::Closed);
        }
        // The request to close may not have arrived, so the session is attached again to send another one.
        self.is_close_written = false;
        if self.key.is_some() && (was_attached && is_keeper || is_reader) {
            // Keeper restores no session, but keeps it until its timeout. A client that only reads owns
            // nothing that a session keeps, and a server without a quorum knows only sessions that it has
            // opened itself.
            self.end(if self.phase == Phase::Closing { SessionEnd::Closed } else { SessionEnd::Expired });
        }
    }

    /// Removes the subscribers of watches whose request was not answered on the lost link. Nothing shows that
    /// the server set these watches, or reported earlier changes.
    fn unsubscribe_unanswered(&mut self) {
        for in_flight in &mut self.requests.in_flight {
            let subscribers = mem::take(&mut in_flight.subscribers);
            let paths = in_flight.watch.iter().flat_map(WatchRequest::paths);
            for (path, (id, _)) in paths.zip(subscribers) {
                self.watches.unregister(id, path, WatchKind::Data);
            }
        }
    }

    /// Ends the session. Requests without a reply will not get one any more.
    pub(in crate::session) fn end(&mut self, end: SessionEnd) {
        if self.ended().is_some() {
            return;
        }
        self.phase = Phase::Ended(end);
        self.lease.end(end);
        self.requests.end(end, |_| true, &mut self.deliveries.finished);
        self.requests.in_flight.clear();
        self.watches.end(end, &mut self.deliveries.fires);
        self.persistent.end(&PersistentSignal::Ended(end), &mut self.deliveries.persistent);
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
        // A session that ends with its probe was never of use.
        let is_probing = self.settings.abilities.is_probing() && !self.settings.only_reads;
        let up = self.link == Link::Attached && !is_probing;
        LinkState { up, is_read_only: up && self.read_only_since.is_some(), losses: self.losses }
    }

    pub(in crate::session) fn closer(&self) -> Option<SessionCloser> {
        let refused = self.ended() == Some(SessionEnd::AuthFailed);
        // A session that owns nothing can expire, and a server without a quorum could not close it.
        self.key.as_ref().filter(|_| !self.settings.only_reads).map(|key| SessionCloser {
            session_id: key.id,
            password: key.password.clone(),
            timeout: self.timeout,
            credentials: if refused { Vec::new() } else { self.settings.credentials.clone() },
            sasl: self.settings.sasl.clone().filter(|_| !refused),
            with_sasl: false,
        })
    }

    /// Returns the state of the link if it has changed since the last call.
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
}

// Times at which links count as silent and sessions are given up.
impl Machine {
    /// Checks the time. An error means that the link is no longer usable.
    pub(in crate::session) fn tick(&mut self, now: Timestamp) -> Result<(), LinkError> {
        if self.link != Link::Attached && self.abandon_at().is_some_and(|at| now >= at) {
            self.end(SessionEnd::Abandoned);
            return Ok(());
        }
        match self.link {
            Link::Down => Ok(()),
            Link::Handshake { until, .. } | Link::Authenticating { until, .. } if now >= until => {
                Err(LinkError::Handshake)
            }
            Link::Attached if self.is_stale(now) => Err(LinkError::Paused),
            Link::Attached if self.silent_at().is_some_and(|at| now >= at) => Err(LinkError::Silent),
            Link::Attached if self.search_at().is_some_and(|at| now >= at) => Err(LinkError::ReadOnly),
            Link::Handshake { .. } | Link::Authenticating { .. } | Link::Attached => Ok(()),
        }
    }

    /// Returns the time of the next call of [`tick`](Self::tick) or [`write`](Self::write) if nothing else
    /// happens.
    pub(in crate::session) fn next_deadline(&self) -> Option<Timestamp> {
        match self.link {
            Link::Down => self.abandon_at(),
            Link::Handshake { until, .. } | Link::Authenticating { until, .. } => {
                Some(self.abandon_at().map_or(until, |at| at.min(until)))
            }
            Link::Attached => {
                let ping = self.last_sent + self.timing().pulse();
                let sooner = self.silent_at().map_or(ping, |at| at.min(ping));
                Some(self.search_at().map_or(sooner, |at| at.min(sooner)))
            }
        }
    }

    pub(in crate::session) fn timing(&self) -> Timing {
        Timing { timeout: self.timeout, tick: self.lease.tick() }
    }

    /// Returns true if a pause of the process kept the link idle for so long that a write sent now would
    /// prove little (decision 3). A server forwards a write immediately, but reports the session to its
    /// leader only with the next relay. Until then the leader decides by older information. Re-attaching the
    /// session counts with the leader immediately.
    ///
    /// A link with outstanding replies is not abandoned, because the outcome of those requests would become
    /// unknown.
    fn is_stale(&self, now: Timestamp) -> bool {
        let idle =
            self.link == Link::Attached && (self.requests.in_flight.is_empty() || planted!(StaleByTimeout));
        idle && now.since(self.last_sent) > self.timing().longest_pause()
    }

    /// Returns the time at which a link with an outstanding reply counts as lost: a third of the timeout
    /// after the last byte of any reply, or the whole timeout if bytes trickle in but the reply does not
    /// complete. Events do not count as replies, because a link that is cut in one direction may keep
    /// delivering them. After a silence of a third of the timeout, a write still gives a lease that lasts
    /// beyond the next heartbeat (decision 3).
    fn silent_at(&self) -> Option<Timestamp> {
        let request = self.requests.in_flight.front().map(|in_flight| in_flight.sent_at);
        let oldest = request.into_iter().chain(self.pings.front().copied()).min()?;
        let quiet = self.last_received.max(oldest) + self.timing().silence();
        Some(quiet.min(oldest + self.timeout))
    }

    /// Returns the time at which a link to a server without a quorum is given up, to look for a better one.
    fn search_at(&self) -> Option<Timestamp> {
        self.read_only_since.map(|since| since + SEARCH)
    }

    /// Returns the time at which a session that cannot be re-attached is given up: one timeout after the last
    /// possible lease.
    fn abandon_at(&self) -> Option<Timestamp> {
        let _attached = self.key.as_ref()?;
        let at = self.last_answered + self.timeout.saturating_sub(self.lease.margin()) + self.timeout;
        // By the clock alone, a process that was frozen would give up the session immediately. It gets a
        // third of the timeout to re-attach the session, which may still be alive.
        Some(at.max(self.down_since + self.timeout / 3))
    }
}
