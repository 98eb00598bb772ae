use super::ephemerals::Change;
use super::watch_reads::WatchReads;
use crate::session::{Cause, Fired, Lane, Outcome, SessionEnd, WatchKind};
use crate::time::Timestamp;
use docent_proto::{OpCode, Request, RequestFrame};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A request that waits to be written.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) lane: Lane,
    /// Time at which it ends without an answer; `None` for never.
    pub(super) deadline: Option<Instant>,
    /// `None` for the session's own requests.
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

impl Queued {
    /// A request of the session itself, which nobody waits for.
    pub(super) fn own(request: Request) -> Self {
        Self { id: 0, request, lane: Lane::Cleanup, deadline: None, done: None }
    }
}

/// A request that was written and waits for its reply.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: u64,
    pub(super) xid: i32,
    pub(super) op: OpCode,
    /// Bytes of its frame.
    pub(super) size: usize,
    pub(super) sent_at: Timestamp,
    /// Send time of the newest request that the servers' leader had heard of by then, at the least; see
    /// `Heard`.
    pub(super) heard: Timestamp,
    pub(super) is_write: bool,
    pub(super) lane: Lane,
    pub(super) watch: Option<WatchRequest>,
    /// Subscribers of the watches that a [`Request::SetWatches`] asks for: events may come before the reply.
    pub(super) subscribers: Vec<Subscriber>,
    /// True when it sets no watch, because a persistent one serves it.
    pub(super) is_served: bool,
    /// Its effect on the ephemeral nodes of the session.
    pub(super) ephemerals: Change,
    /// Request to send again, in its old place, when the link is lost.
    pub(super) again: Option<Request>,
    pub(super) deadline: Option<Instant>,
    /// `None` for the session's own requests and for those that nobody waits for any more.
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

/// Number of a subscriber in the table of watches, and its end of the event.
pub(super) type Subscriber = (u64, oneshot::Receiver<Fired>);

/// Watches that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchRequest {
    /// The one of a read.
    Read { path: Arc<str>, op: OpCode },
    /// Those on data that a [`Request::SetWatches`] sets.
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

    /// True when the server keeps it in the table of watches on children.
    pub(super) fn is_on_children(&self) -> bool {
        matches!(self, Self::Read { op: OpCode::GetChildren | OpCode::GetChildren2, .. })
    }

    /// Paths of the watches.
    pub(super) fn paths(&self) -> &[Arc<str>] {
        match self {
            Self::Read { path, .. } => std::slice::from_ref(path),
            Self::Data(paths) => paths,
        }
    }
}

/// Requests in the order of their calls: first those in flight, then those that wait.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next_id: u64,
    /// Earliest deadline. It may belong to a request that has ended.
    earliest: Option<Instant>,
    /// Requests in the queue and in flight that will leave watches.
    watch_reads: WatchReads,
    pub(super) queue: VecDeque<Queued>,
    /// Requests of [`Lane::Lease`], which wait for nothing else.
    ahead: VecDeque<Queued>,
    /// Ids of queued requests that rest on what the link has told: see [`tie`](Self::tie).
    tied: Vec<u64>,
    pub(super) in_flight: VecDeque<InFlight>,
}

/// A finished request, to be delivered once the machine is no longer locked.
pub(super) type Finished = (oneshot::Sender<Outcome>, Outcome);

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.ahead.len() + self.queue.len() + self.in_flight.len()
    }

    /// Gives back the room of earlier requests, if there are none.
    pub(super) fn release(&mut self) {
        if self.len() == 0 {
            (self.ahead, self.queue, self.in_flight) = <_>::default();
        }
    }

    /// Takes the next request of [`Lane::Lease`], which goes ahead of all others.
    pub(super) fn next_ahead(&mut self) -> Option<Queued> {
        self.ahead.pop_front()
    }

    pub(super) fn push(
        &mut self,
        request: Request,
        lane: Lane,
        deadline: Option<Instant>,
        done: Option<oneshot::Sender<Outcome>>,
    ) -> u64 {
        self.next_id += 1;
        self.earliest = earlier(self.earliest, deadline);
        if let Some(watch) = WatchRequest::of(&request) {
            self.watch_reads.add(&watch);
        }
        let queue = if lane == Lane::Lease { &mut self.ahead } else { &mut self.queue };
        queue.push_back(Queued { id: self.next_id, request, lane, deadline, done });
        self.next_id
    }

    /// Ties the request `id` to what the link has told so far: it ends if the link is lost, or tells of a
    /// change of one of its nodes, before it is written.
    pub(super) fn tie(&mut self, id: u64) {
        // Ids of requests that were written since are dropped when the list would grow.
        if self.tied.len() == self.tied.capacity() {
            let queue = &self.queue;
            self.tied.retain(|id| queue.binary_search_by_key(id, |queued| queued.id).is_ok());
        }
        self.tied.push(id);
    }

    /// True when the next request is [tied](Self::tie).
    pub(super) fn is_next_tied(&self) -> bool {
        self.queue.front().is_some_and(|queued| self.tied.binary_search(&queued.id).is_ok())
    }

    /// Ends those that are tied and about the node at `path`, which was changed.
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

    /// Time of the next call of [`expire`](Self::expire). The request with that deadline has mostly ended
    /// long before.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends requests whose deadline has come. One that was written stays in its place, for its reply.
    pub(super) fn expire(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        self.earliest = None;
        for in_flight in &mut self.in_flight {
            if in_flight.deadline.is_some_and(|deadline| deadline <= now) {
                in_flight.deadline = None;
                finished.extend(in_flight.done.take().map(|done| (done, Outcome::Unknown(Cause::Deadline))));
            }
            self.earliest = earlier(self.earliest, in_flight.deadline);
        }
        self.queue.retain_mut(|queued| {
            let expired = queued.deadline.is_some_and(|deadline| deadline <= now);
            if expired {
                self.watch_reads.forget(&queued.request);
                finished.extend(queued.done.take().map(|done| (done, Outcome::NotSent(Cause::Deadline))));
            } else {
                self.earliest = earlier(self.earliest, queued.deadline);
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

    /// Removes the oldest one that was written: it is answered.
    pub(super) fn answered(&mut self) -> Option<InFlight> {
        let in_flight = self.in_flight.pop_front()?;
        in_flight.watch.iter().for_each(|watch| self.watch_reads.remove(watch));
        Some(in_flight)
    }

    /// True when a request that is on its way will leave a watch on `path` in the same table of the server.
    pub(super) fn will_watch(&self, path: &str, kind: WatchKind) -> bool {
        self.watch_reads.contains(path, kind)
    }

    /// True when a write was sent and not answered, whether or not anybody still waits for its outcome.
    pub(super) fn has_unanswered_writes(&self) -> bool {
        self.in_flight.iter().any(|in_flight| in_flight.is_write)
    }

    /// Takes note that the link is gone, and with it all replies to written requests.
    pub(super) fn link_lost(&mut self, finished: &mut Vec<Finished>) {
        let tied = std::mem::take(&mut self.tied);
        self.end_unsent(tied, finished);
        // The session's own requests are about the link that is gone.
        self.queue.retain(|queued| queued.done.is_some());
        // Backwards: deletes that are sent again go back to the front of the queue, in the order of their
        // calls.
        for in_flight in self.in_flight.drain(..).rev() {
            in_flight.watch.iter().for_each(|watch| self.watch_reads.remove(watch));
            match (in_flight.done, in_flight.again) {
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

    /// Ends the calls with the session, and leaves the rest.
    pub(super) fn end_calls(&mut self, end: SessionEnd, finished: &mut Vec<Finished>) {
        self.end_those(end, Lane::is_call, finished);
    }

    /// Ends every request with the session.
    pub(super) fn end(&mut self, end: SessionEnd, finished: &mut Vec<Finished>) {
        self.end_those(end, |_| true, finished);
    }

    fn end_those(&mut self, end: SessionEnd, ends: impl Fn(Lane) -> bool, finished: &mut Vec<Finished>) {
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

/// A frame above the servers' limit would make them drop the link, and everything in flight with it.
pub(super) fn check_size(request: &Request, limit: usize) -> Result<(), Cause> {
    /// No header and no field besides paths and data comes near this.
    const SMALL: usize = 16 * 1024;
    if request.payload_len() + SMALL <= limit {
        return Ok(());
    }
    let mut frame = Vec::new();
    RequestFrame::encode_parts(0, request, &mut frame);
    let size = frame.len() - 4;
    if size <= limit { Ok(()) } else { Err(Cause::TooLarge { size, limit }) }
}
