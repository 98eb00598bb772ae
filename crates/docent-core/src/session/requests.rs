use super::abilities::Ability;
use super::ephemerals::Change;
use super::own::Statless;
use crate::session::{Cause, Fired, Lane, Outcome, SessionEnd, SessionSettings, WatchKind};
use crate::time::Timestamp;
use docent_proto::{OpCode, Request, RequestFrame};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A request that waits to be written.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) lane: Lane,
    /// Time at which the request ends without an answer; `None` for never.
    pub(super) deadline: Option<Instant>,
    /// `None` for the session's own requests.
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

impl Queued {
    /// Creates a request of the session itself, whose outcome has no receiver.
    pub(super) fn own(request: Request) -> Self {
        Self { id: OWN, request, lane: Lane::Cleanup, deadline: None, done: None }
    }
}

/// Id of a request that is in no queue.
pub(super) const OWN: u64 = 0;

/// A request that was written and waits for its reply.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: u64,
    pub(super) xid: i32,
    pub(super) op: OpCode,
    /// Bytes of the request's frame.
    pub(super) size: usize,
    pub(super) sent_at: Timestamp,
    /// Send time of the newest request that the servers' leader is certain to know about at `sent_at`; see
    /// `LeaderContact`.
    pub(super) leader_contact: Timestamp,
    pub(super) is_write: bool,
    pub(super) lane: Lane,
    pub(super) watch: Option<WatchRequest>,
    /// Subscribers of the watches that a [`Request::SetWatches`] sets. Events may arrive before the reply.
    pub(super) subscribers: Vec<Subscriber>,
    /// True if the request sets no watch because a persistent watch serves it.
    pub(super) is_served: bool,
    /// The request's effect on the ephemeral nodes of the session.
    pub(super) ephemerals: Change,
    /// Ability that the servers need for the request.
    pub(super) ability: Option<Ability>,
    /// For a create that was sent without asking for the stat.
    pub(super) statless: Option<Statless>,
    /// Request to send again, in its old position, if the link is lost.
    pub(super) repeat: Option<Request>,
    pub(super) deadline: Option<Instant>,
    /// `None` for the session's own requests and for those whose caller no longer waits.
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

/// Number of a subscriber in the table of watches, and its receiver for the event.
pub(super) type Subscriber = (u64, oneshot::Receiver<Fired>);

/// Watches that a request sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchRequest {
    /// The watch of a read.
    Read { path: Arc<str>, op: OpCode },
    /// The watches on data that a [`Request::SetWatches`] sets.
    Data(Vec<Arc<str>>),
}

impl WatchRequest {
    pub(super) fn of(request: &Request) -> Option<Self> {
        match request {
            Request::Exists { path, watch: true }
            | Request::GetData { path, watch: true }
            | Request::GetChildren { path, watch: true }
            | Request::GetChildren2 { path, watch: true } => {
                Some(Self::Read { path: path.as_str().into(), op: request.op() })
            }
            Request::SetWatches(watches) => {
                Some(Self::Data(watches.data.iter().map(|path| path.as_str().into()).collect()))
            }
            _ => None,
        }
    }

    /// Returns true if the server keeps the watch in its table of watches on children.
    pub(super) fn is_on_children(&self) -> bool {
        matches!(self, Self::Read { op: OpCode::GetChildren | OpCode::GetChildren2, .. })
    }

    /// Returns the paths of the watches.
    pub(super) fn paths(&self) -> &[Arc<str>] {
        match self {
            Self::Read { path, .. } => std::slice::from_ref(path),
            Self::Data(paths) => paths,
        }
    }
}

/// Requests in the order of their calls: those in flight, then those that wait.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next_id: u64,
    /// Time of the next call of [`expire`](Self::expire): the earliest deadline. The request with this
    /// deadline has usually ended long before.
    pub(super) next_expiry: Option<Instant>,
    /// Requests in the queue and in flight that will set watches.
    watch_reads: WatchReads,
    pub(super) queue: VecDeque<Queued>,
    /// Requests of [`Lane::Lease`], which overtake all others.
    pub(super) ahead: VecDeque<Queued>,
    /// Ids of queued requests that depend on what the link has reported so far; see [`tie`](Self::tie).
    tied: Vec<u64>,
    pub(super) in_flight: VecDeque<InFlight>,
}

/// A finished request, delivered once the machine is no longer locked.
pub(super) type Finished = (oneshot::Sender<Outcome>, Outcome);

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.ahead.len() + self.queue.len() + self.in_flight.len()
    }

    /// Frees the memory of earlier requests if there are none left.
    pub(super) fn release(&mut self) {
        if self.len() == 0 {
            (self.ahead, self.queue, self.in_flight) = <_>::default();
        }
    }

    pub(super) fn push(
        &mut self,
        request: Request,
        lane: Lane,
        deadline: Option<Instant>,
        done: Option<oneshot::Sender<Outcome>>,
    ) -> u64 {
        self.next_id += 1;
        self.next_expiry = earlier(self.next_expiry, deadline);
        if let Some(watch) = WatchRequest::of(&request) {
            self.watch_reads.add(&watch);
        }
        let queue = if lane == Lane::Lease { &mut self.ahead } else { &mut self.queue };
        queue.push_back(Queued { id: self.next_id, request, lane, deadline, done });
        self.next_id
    }

    /// Ties the request `id` to what the link has reported so far. The request ends if the link is lost, or
    /// reports a change of one of the request's nodes, before the request is written.
    pub(super) fn tie(&mut self, id: u64) {
        // Ids of requests that were written in the meantime are dropped when the list would grow.
        if self.tied.len() == self.tied.capacity() {
            let queue = &self.queue;
            self.tied.retain(|id| queue.binary_search_by_key(id, |queued| queued.id).is_ok());
        }
        self.tied.push(id);
    }

    /// Returns true if the next request is [tied](Self::tie).
    pub(super) fn is_next_tied(&self) -> bool {
        self.queue.front().is_some_and(|queued| self.tied.binary_search(&queued.id).is_ok())
    }

    /// Ends tied requests that name the node at `path`, which was changed.
    pub(super) fn changed(&mut self, path: &str, finished: &mut Vec<Finished>) {
        if self.tied.is_empty() {
            return;
        }
        let queue = &self.queue;
        let is_about = |id: &u64| {
            let index = queue.binary_search_by_key(id, |queued| queued.id);
            index.is_ok_and(|index| is_about(&queue[index].request, path))
        };
        let (ended, tied) = std::mem::take(&mut self.tied).into_iter().partition(is_about);
        self.tied = tied;
        self.end_unsent(ended, finished);
    }

    /// Ends requests that were not written yet.
    fn end_unsent(&mut self, ids: Vec<u64>, finished: &mut Vec<Finished>) {
        for id in ids {
            let Ok(index) = self.queue.binary_search_by_key(&id, |queued| queued.id) else { continue };
            let Some(queued) = self.queue.remove(index) else { continue };
            self.watch_reads.forget(&queued.request);
            finished.extend(queued.done.map(|done| (done, Outcome::NotSent(Cause::LinkLost))));
        }
    }

    /// Ends requests whose deadline has passed. A request that was written keeps its position, to match its
    /// reply.
    pub(super) fn expire(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        self.next_expiry = None;
        for in_flight in &mut self.in_flight {
            if in_flight.deadline.is_some_and(|deadline| deadline <= now) {
                in_flight.deadline = None;
                finished.extend(in_flight.done.take().map(|done| (done, Outcome::Unknown(Cause::Deadline))));
            }
            self.next_expiry = earlier(self.next_expiry, in_flight.deadline);
        }
        self.queue.retain_mut(|queued| {
            let expired = queued.deadline.is_some_and(|deadline| deadline <= now);
            if expired {
                self.watch_reads.forget(&queued.request);
                finished.extend(queued.done.take().map(|done| (done, Outcome::NotSent(Cause::Deadline))));
            } else {
                self.next_expiry = earlier(self.next_expiry, queued.deadline);
            }
            !expired
        });
    }

    /// Removes a request that was not written yet.
    pub(super) fn withdraw(&mut self, id: u64) -> bool {
        for queue in [&mut self.ahead, &mut self.queue] {
            let Ok(index) = queue.binary_search_by_key(&id, |queued| queued.id) else { continue };
            let withdrawn = queue.remove(index);
            withdrawn.iter().for_each(|queued| self.watch_reads.forget(&queued.request));
            return withdrawn.is_some();
        }
        false
    }

    /// Removes the oldest request in flight, which was answered.
    pub(super) fn answered(&mut self) -> Option<InFlight> {
        let in_flight = self.in_flight.pop_front()?;
        in_flight.watch.iter().for_each(|watch| self.watch_reads.remove(watch));
        Some(in_flight)
    }

    /// Returns true if a request in flight will set a watch on `path` in the same table of the server.
    pub(super) fn will_watch(&self, path: &str, kind: WatchKind) -> bool {
        self.watch_reads.contains(path, kind)
    }

    /// Returns true if a write was sent and not answered, whether or not a caller still waits for its
    /// outcome.
    pub(super) fn has_unanswered_writes(&self) -> bool {
        self.in_flight.iter().any(|in_flight| in_flight.is_write)
    }

    /// Records that the link is lost, and with it all replies to written requests.
    pub(super) fn link_lost(&mut self, finished: &mut Vec<Finished>) {
        let tied = std::mem::take(&mut self.tied);
        self.end_unsent(tied, finished);
        // The session's own requests concern the lost link only.
        self.queue.retain(|queued| queued.done.is_some());
        // In reverse, because deletes that are sent again return to the front of the queue in the order of
        // their calls.
        for in_flight in self.in_flight.drain(..).rev() {
            in_flight.watch.iter().for_each(|watch| self.watch_reads.remove(watch));
            match (in_flight.done, in_flight.repeat) {
                (Some(done), Some(request)) => {
                    let InFlight { id, lane, deadline, .. } = in_flight;
                    self.queue.push_front(Queued { id, request, lane, deadline, done: Some(done) });
                }
                (Some(done), None) if planted!(UnknownIsNotSent) => {
                    finished.push((done, Outcome::NotSent(Cause::LinkLost)));
                }
                (Some(done), None) => finished.push((done, Outcome::Unknown(Cause::LinkLost))),
                (None, _) => {}
            }
        }
    }

    /// Ends the requests of those lanes that `ends` selects with the session.
    pub(super) fn end(&mut self, end: SessionEnd, ends: impl Fn(Lane) -> bool, finished: &mut Vec<Finished>) {
        for in_flight in &mut self.in_flight {
            if ends(in_flight.lane)
                && let Some(done) = in_flight.done.take()
            {
                finished.push((done, Outcome::Unknown(Cause::Ended(end))));
            }
        }
        for queue in [&mut self.ahead, &mut self.queue] {
            queue.retain_mut(|queued| {
                if !ends(queued.lane) {
                    return true;
                }
                self.watch_reads.forget(&queued.request);
                finished.extend(queued.done.take().map(|done| (done, Outcome::NotSent(Cause::Ended(end)))));
                false
            });
        }
    }
}

fn is_about(request: &Request, path: &str) -> bool {
    match request {
        Request::Multi(ops) => ops.iter().any(|op| op.path() == path),
        request => request.path() == Some(path),
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Phase of a session. A session never returns to an earlier phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// No more calls are accepted.
    Draining,
    /// The session is closed once nothing waits.
    Closing,
    Ended(SessionEnd),
}

impl Phase {
    #[cfg(feature = "zookeeper-client")]
    pub(super) fn is_before(self, other: Self) -> bool {
        let rank = |phase| match phase {
            Self::Open => 0,
            Self::Draining => 1,
            Self::Closing => 2,
            Self::Ended(_) => 3,
        };
        rank(self) < rank(other)
    }
}

/// Checks that a session in `phase`, in which a number of requests are `waiting`, accepts `request`.
pub(super) fn admit(
    request: &Request,
    lane: Lane,
    phase: Phase,
    waiting: usize,
    settings: &SessionSettings,
) -> Result<(), Cause> {
    match phase {
        Phase::Open => {}
        // Deletes of the client's own nodes are still accepted, so that a closing client leaves none behind.
        Phase::Draining if !lane.is_call() => {}
        Phase::Draining | Phase::Closing => return Err(Cause::Ended(SessionEnd::Closed)),
        Phase::Ended(end) => return Err(Cause::Ended(end)),
    }
    match lane.is_call() {
        true if waiting >= settings.queue_limit => Err(Cause::QueueFull),
        true => check_size(request, settings.outbound_limit),
        false => Ok(()),
    }
}

/// Rejects a request whose frame exceeds `limit`. Such a frame would make the servers close the link and lose
/// everything in flight.
fn check_size(request: &Request, limit: usize) -> Result<(), Cause> {
    /// Upper bound in bytes for the header and all fields except paths and data.
    const SMALL: usize = 16 * 1024;
    if request.payload_len() + SMALL <= limit {
        return Ok(());
    }
    let size = frame_size(request);
    if size <= limit { Ok(()) } else { Err(Cause::TooLarge { size, limit }) }
}

/// Returns the bytes of a request's frame, without its length.
pub(super) fn frame_size(request: &Request) -> usize {
    let mut frame = Vec::new();
    RequestFrame::encode_parts(0, request, &mut frame);
    frame.len() - 4
}

/// Number of paths for which an empty table keeps room.
const FEW: usize = 64;

/// Requests in flight that set watches, counted by path and by the server's table that will hold the watch.
/// This way, removing a subscriber need not search through all waiting requests.
#[derive(Debug, Default)]
pub(super) struct WatchReads {
    on_data: HashMap<Arc<str>, usize>,
    on_children: HashMap<Arc<str>, usize>,
}

impl WatchReads {
    fn table(&mut self, on_children: bool) -> &mut HashMap<Arc<str>, usize> {
        if on_children { &mut self.on_children } else { &mut self.on_data }
    }

    pub(super) fn add(&mut self, watch: &WatchRequest) {
        let table = self.table(watch.is_on_children());
        for path in watch.paths() {
            match table.get_mut(path) {
                Some(requests) => *requests += 1,
                None => drop(table.insert(Arc::clone(path), 1)),
            }
        }
    }

    /// Removes a request that was answered, or will not be.
    pub(super) fn remove(&mut self, watch: &WatchRequest) {
        let table = self.table(watch.is_on_children());
        for path in watch.paths() {
            let Some(requests) = table.get_mut(path) else { continue };
            *requests -= 1;
            if *requests == 0 {
                table.remove(path);
            }
        }
        // A large request of watches leaves the table big and empty.
        if table.is_empty() {
            table.shrink_to(FEW);
        }
    }

    /// Like [`remove`](Self::remove), if `request` sets watches.
    pub(super) fn forget(&mut self, request: &Request) {
        if let Some(watch) = WatchRequest::of(request) {
            self.remove(&watch);
        }
    }

    /// Returns true if one of the requests will set a watch on `path` in the table for watches of `kind`.
    pub(super) fn contains(&self, path: &str, kind: WatchKind) -> bool {
        match kind {
            WatchKind::Data | WatchKind::Exist => self.on_data.contains_key(path),
            WatchKind::Child => self.on_children.contains_key(path),
            WatchKind::Persistent => false,
        }
    }
}
