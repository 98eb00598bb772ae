use super::call::{self, Answer, Call, WatchResult};
use super::convert::Failure;
use crate::session::ephemerals::{Change, Ephemerals, MAX_DOUBTS};
use crate::session::lease::{LeaderContact, Lease};
use crate::session::own::{proves_session, verdict};
use crate::session::requests::{Finished, Phase, Queued, Requests};
use crate::session::{
    Cause, Fired, Lane, LinkState, Outcome, Reply, SessionEnd, SessionSettings, Watch, WatchKind, Withdraw,
};
use crate::time::{Clock, Timestamp};
use docent_proto::{Code, Request};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use zookeeper_client as zk;

/// State shared by calls and the driver.
pub(super) struct Shared {
    pub(super) settings: SessionSettings,
    /// True if a lower bound of all timeouts that the session may be granted is known.
    pub(super) knows_min_timeout: bool,
    pub(super) lease: Arc<Lease>,
    pub(super) clock: Arc<dyn Clock>,
    state: Mutex<State>,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) link: watch::Sender<LinkState>,
    /// Calls for the driver to poll.
    calls: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

pub(super) struct State {
    /// The crate's session, from its attachment until it is to end. The crate closes the session when all
    /// clones are dropped.
    pub(super) client: Option<zk::Client>,
    /// Time at which the crate's link was found down; `None` while it is up.
    pub(super) down_since: Option<Timestamp>,
    /// Requests that wait for the link, and can still be withdrawn. Requests in flight belong to the crate.
    pub(super) waiting: Requests,
    /// Number of requests handed to the crate.
    pub(super) in_flight: usize,
    pub(super) ephemerals: Ephemerals,
    /// Id of the last pending check of ephemeral nodes, started because a create was refused.
    pub(super) doubts: Option<u64>,
    pub(super) id: i64,
    pub(super) last_zxid: i64,
    /// Time at which the newest answered request was handed to the crate.
    pub(super) last_answered: Timestamp,
    /// Time at which the newest request was handed to the crate.
    pub(super) last_sent: Timestamp,
    /// Send times of the requests that the servers received, as far as answers show it. Answers to the
    /// crate's own pings are not visible.
    pub(super) leader_contact: LeaderContact,
}

/// Watch that the crate keeps, and the receiver of its event.
type Watching = (zk::OneshotWatcher, oneshot::Sender<Fired>);

/// A request handed to the crate.
struct Sent {
    at: Timestamp,
    /// Send time of the newest request that the servers' leader is certain to know about at `at`; see
    /// `LeaderContact`.
    leader_contact: Timestamp,
    lane: Lane,
    is_write: bool,
    /// True for a request that sets several watches and reads nothing.
    sets_watches: bool,
    ephemerals: Change,
    /// Number of the request among the session's requests.
    id: u64,
    done: oneshot::Sender<Outcome>,
}

impl Shared {
    pub(super) fn new(
        settings: SessionSettings,
        lease: Arc<Lease>,
        clock: Arc<dyn Clock>,
        calls: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
        knows_min_timeout: bool,
    ) -> Self {
        let state = State {
            client: None,
            down_since: Some(clock.now()),
            waiting: Requests::default(),
            in_flight: 0,
            ephemerals: Ephemerals::new(settings.ephemeral_limit),
            doubts: None,
            id: 0,
            last_zxid: settings.last_zxid,
            last_answered: clock.now(),
            last_sent: clock.now(),
            leader_contact: LeaderContact::new(lease.timing().relay()),
        };
        Self {
            settings,
            knows_min_timeout,
            lease,
            clock,
            state: Mutex::new(state),
            phase: watch::Sender::new(Phase::Open),
            link: watch::Sender::new(LinkState::DOWN),
            calls,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters `phase` unless the session has already reached it. Requests that `change` finished are
    /// delivered without the lock.
    pub(super) fn advance(&self, phase: Phase, change: impl FnOnce(&mut State, &mut Vec<Finished>)) {
        let mut finished = Vec::new();
        {
            let mut state = self.lock();
            let advanced = self.phase.send_if_modified(|known| {
                let advanced = known.is_before(phase);
                if advanced {
                    *known = phase;
                }
                advanced
            });
            if advanced {
                change(&mut state, &mut finished);
            }
        }
        for (done, outcome) in finished {
            let _ = done.send(outcome);
        }
    }

    /// Records that the session has ended.
    pub(super) fn end(&self, end: SessionEnd) {
        self.advance(Phase::Ended(end), |state, finished| {
            self.lease.end(end);
            state.client = None;
            state.waiting.end(end, |_| true, finished);
        });
    }

    /// Hands waiting requests to the crate if there is a link.
    pub(super) fn send_waiting(self: &Arc<Self>, state: &mut State) {
        let Some(client) = state.client.clone().filter(|_| state.down_since.is_none()) else { return };
        let next = |waiting: &mut Requests| waiting.ahead.pop_front().or_else(|| waiting.queue.pop_front());
        while let Some(Queued { id, request, lane, done: Some(done), .. }) = next(&mut state.waiting) {
            let ephemerals = match state.ephemerals.send(&request, lane) {
                Ok(change) => change,
                Err(cause) => {
                    let _ = done.send(Outcome::NotSent(cause));
                    // Some of the counted nodes may have been deleted. The replies have no receiver.
                    if state.doubts.is_none() {
                        for check in state.ephemerals.doubt(MAX_DOUBTS) {
                            let no_receiver = oneshot::channel().0;
                            state.doubts =
                                Some(state.waiting.push(check, Lane::Cleanup, None, Some(no_receiver)));
                        }
                    }
                    continue;
                }
            };
            let at = self.clock.now();
            let sent = Sent {
                at,
                leader_contact: state.leader_contact.by(at),
                lane,
                is_write: request.is_write(),
                sets_watches: matches!(request, Request::SetWatches(_)),
                ephemerals,
                id,
                done,
            };
            state.last_sent = at;
            let mut call = call::call(client.clone(), request);
            // The crate enqueues at the first poll, so the first poll happens here, where the order of calls
            // is known.
            let early = (&mut call).now_or_never();
            state.in_flight += 1;
            let served = Arc::clone(self).serve(sent, call, early);
            // Without a driver the session has ended, and its requests with it.
            let _ = self.calls.send(served.boxed());
        }
    }

    /// Waits for the outcome of a request, and then for its watch.
    async fn serve(self: Arc<Self>, mut sent: Sent, call: Call, early: Option<Result<Answer, Failure>>) {
        let task_stopped = early.as_ref().is_some_and(|result| matches!(result, Err(Failure::Lost)));
        if task_stopped {
            // At the first poll no link can have been lost yet, so the crate's own task has stopped.
            self.end(SessionEnd::Abandoned);
        }
        let mut phase = self.phase.subscribe();
        let result = match early {
            Some(result) => Ok(result),
            None => tokio::select! {
                biased;
                result = call => Ok(result),
                end = ended(&mut phase, sent.lane) => Err(end),
            },
        };
        {
            let mut state = self.lock();
            state.in_flight -= 1;
            if state.doubts == Some(sent.id) {
                state.doubts = None;
            }
            let unanswered = Err(Code::RUNTIME_INCONSISTENCY);
            let answer =
                result.as_ref().ok().and_then(|result| result.as_ref().ok()).map(|(result, _)| result);
            state.ephemerals.answered(std::mem::take(&mut sent.ephemerals), answer.unwrap_or(&unanswered));
        }
        let (outcome, watching) = match result {
            Ok(Ok(answer)) => self.answered(&sent, answer),
            Ok(Err(failure)) => (Outcome::Unknown(self.failed(failure)), Vec::new()),
            Err(end) => (Outcome::Unknown(Cause::Ended(end)), Vec::new()),
        };
        let _ = sent.done.send(outcome);
        if !watching.is_empty() {
            let waits = watching.into_iter().map(|(watcher, fired)| deliver(watcher, fired, phase.clone()));
            join_all(waits).await;
        }
    }

    fn answered(&self, sent: &Sent, (result, watches_left): Answer) -> (Outcome, Vec<Watching>) {
        let (code, now) = (verdict(&result), self.clock.now());
        // The crate rejects some access control lists on its own, without a server, so that code proves
        // nothing here (decision 3).
        let by_servers = proves_session(code) && code != Code::INVALID_ACL;
        if sent.is_write && by_servers {
            self.lease.renew(sent.at, sent.leader_contact, now);
        }
        let zxid = {
            let mut state = self.lock();
            if by_servers {
                state.leader_contact.answered(sent.at, now);
            }
            state.last_answered = state.last_answered.max(sent.at);
            state.last_zxid = state.last_zxid.max(result.as_ref().map_or(0, call::newest_zxid));
            state.last_zxid
        };
        let mut watching = Vec::new();
        let watches_left = watches_left.into_iter().map(|watches_left| {
            let (fire, fired) = oneshot::channel();
            match watches_left {
                WatchResult::Set(watcher) => watching.push((watcher, fire)),
                WatchResult::Fired(event) => drop(fire.send(Fired::Event(event))),
            }
            Watch { fired, registration: None }
        });
        let mut watches: Vec<_> = watches_left.collect();
        let watch = if sent.sets_watches { None } else { watches.pop().map(Box::new) };
        (Outcome::Reply(Reply { result, zxid, watch, watches }), watching)
    }

    /// Handles a request that got no answer. Returns the cause.
    fn failed(&self, failure: Failure) -> Cause {
        match failure {
            Failure::Answered(_) | Failure::Lost => {
                return self.ended().map_or(Cause::LinkLost, Cause::Ended);
            }
            Failure::Expired => self.expired(),
            Failure::Refused => self.end(SessionEnd::Abandoned),
            Failure::Closed => self.end(SessionEnd::Closed),
        }
        Cause::Ended(self.ended().unwrap_or(SessionEnd::Abandoned))
    }

    /// Returns the end of the session, or `None` while it lasts.
    pub(super) fn ended(&self) -> Option<SessionEnd> {
        match *self.phase.borrow() {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Records that the crate considers the session expired. The crate does so on its own 7/5 of the timeout
    /// after the last byte it received. Earlier than that, the report can only come from the servers.
    pub(super) fn expired(&self) {
        let silence = self.clock.now().since(self.lock().last_answered);
        let by_servers = silence < self.lease.timeout();
        self.end(if by_servers { SessionEnd::Expired } else { SessionEnd::Abandoned });
    }

    /// Records that the crate opened a session with this timeout, requested at `sent`.
    pub(super) fn attached(&self, client: zk::Client, timeout: Duration, sent: Timestamp) {
        self.lease.attached(timeout, sent);
        let mut state = self.lock();
        state.id = client.session_id().0;
        state.last_answered = sent;
        state.leader_contact.attached(sent);
        state.down_since = Some(self.clock.now());
        // A session that was closed in the meantime ends with the last clone of the client.
        if self.phase.borrow().is_before(Phase::Closing) {
            state.client = Some(client);
        }
    }

    pub(super) fn connected(self: &Arc<Self>) {
        let mut state = self.lock();
        // The crate reports only the newest state: up again means that the link was down.
        let missed = state.down_since.take().is_none();
        // All answers so far arrived over earlier links. They count like the request that re-attached the
        // session (decision 3).
        if !missed {
            state.leader_contact.settle();
        }
        self.send_waiting(&mut state);
        if *self.phase.borrow() == Phase::Closing {
            state.client = None;
        }
        self.link.send_modify(|link| {
            link.up = true;
            link.losses += u64::from(missed);
        });
    }

    pub(super) fn disconnected(&self) {
        let mut finished = Vec::new();
        {
            let mut state = self.lock();
            state.down_since.get_or_insert(self.clock.now());
            // Requests tied to this link end with it, before anything is submitted for the next link.
            state.waiting.link_lost(&mut finished);
            self.link.send_modify(|link| {
                link.losses += u64::from(link.up);
                link.up = false;
            });
        }
        for (done, outcome) in finished {
            let _ = done.send(outcome);
        }
    }

    /// Returns the time of the next request that is sent only for its answer, which shows that the servers
    /// receive this client's requests.
    pub(super) fn pulse_at(&self) -> Option<Timestamp> {
        let state = self.lock();
        let linked = state.client.is_some() && state.down_since.is_none();
        let open = linked && *self.phase.borrow() == Phase::Open;
        open.then(|| state.last_sent + self.lease.timing().pulse())
    }

    /// Sends a request that needs no permission.
    pub(super) fn pulse(self: &Arc<Self>) {
        let mut state = self.lock();
        // The answer has no receiver.
        let (done, _) = oneshot::channel();
        let check = Request::Exists { path: "/".to_owned(), watch: false };
        state.waiting.push(check, Lane::Cleanup, None, Some(done));
        self.send_waiting(&mut state);
    }

    /// Returns the time at which a session that is not re-attached is given up: one timeout after the last
    /// possible lease.
    pub(super) fn abandon_at(&self) -> Option<Timestamp> {
        let timeout = self.lease.timeout();
        let down_since = self.lock().down_since?;
        Some(down_since + timeout.saturating_sub(self.lease.margin()) + timeout)
    }
}

/// Waits for the event of a watch, and delivers it.
async fn deliver(
    watcher: zk::OneshotWatcher,
    mut fired: oneshot::Sender<Fired>,
    mut phase: watch::Receiver<Phase>,
) {
    let event = tokio::select! {
        biased;
        event = call::event(watcher) => event.map(Fired::Event),
        // The subscriber is no longer interested. Dropping the crate's watcher removes the watch.
        () = fired.closed() => return,
        end = ended(&mut phase, Lane::Call) => Some(Fired::Ended(end)),
    };
    let event = match event {
        Some(event) => event,
        // The crate's session ended. The driver finds out why.
        None => Fired::Ended(ended(&mut phase, Lane::Call).await),
    };
    let _ = fired.send(event);
}

/// Resolves when requests of `lane` end unanswered.
async fn ended(phase: &mut watch::Receiver<Phase>, lane: Lane) -> SessionEnd {
    let phase = phase.wait_for(|phase| match phase {
        Phase::Open => false,
        Phase::Draining | Phase::Closing => lane.is_call(),
        Phase::Ended(_) => true,
    });
    match phase.await.as_deref() {
        Ok(Phase::Ended(end)) => *end,
        Ok(_) => SessionEnd::Closed,
        Err(_) => SessionEnd::Abandoned,
    }
}

impl Withdraw for Shared {
    fn withdraw(&self, id: u64) -> bool {
        self.lock().waiting.withdraw(id)
    }

    fn unregister(&self, _id: u64, _path: &str, _kind: WatchKind) {}
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZookeeperClientSession").finish_non_exhaustive()
    }
}
