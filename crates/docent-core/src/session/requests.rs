use super::{Cause, Lane, Outcome, SessionEnd, WatchKind};
use crate::clock::Timestamp;
use bytes::BytesMut;
use docent_proto::{OpCode, Request, RequestFrame};
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// A request that waits to be written.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) lane: Lane,
    /// `None` for the session's own requests.
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

impl Queued {
    /// A request of the session itself, which nobody waits for.
    pub(super) fn own(request: Request) -> Self {
        Self { id: 0, request, lane: Lane::Cleanup, done: None }
    }
}

/// A request that was written and waits for its reply.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: u64,
    pub(super) xid: i32,
    pub(super) op: OpCode,
    pub(super) sent_at: Timestamp,
    pub(super) is_write: bool,
    pub(super) lane: Lane,
    pub(super) watch: Option<WatchRequest>,
    /// What is sent again, in its old place, when the link is lost.
    pub(super) again: Option<Request>,
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

/// The watch a read asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WatchRequest {
    pub(super) path: String,
    pub(super) op: OpCode,
}

impl WatchRequest {
    pub(super) fn of(request: &Request) -> Option<Self> {
        match request {
            Request::Exists { path, watch: true }
            | Request::GetData { path, watch: true }
            | Request::GetChildren { path, watch: true }
            | Request::GetChildren2 { path, watch: true } => {
                Some(Self { path: path.clone(), op: request.op() })
            }
            _ => None,
        }
    }

    /// True when the server keeps it in the same table as watches of `kind`.
    pub(super) fn shares_table(&self, kind: WatchKind) -> bool {
        let on_children = matches!(self.op, OpCode::GetChildren | OpCode::GetChildren2);
        on_children == (kind == WatchKind::Child)
    }
}

/// Requests in the order of their calls: first those in flight, then those that wait.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next_id: u64,
    pub(super) queue: VecDeque<Queued>,
    pub(super) in_flight: VecDeque<InFlight>,
}

/// A finished request, to be delivered once the machine is no longer locked.
pub(super) type Finished = (oneshot::Sender<Outcome>, Outcome);

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.in_flight.len()
    }

    pub(super) fn push(
        &mut self,
        request: Request,
        lane: Lane,
        done: Option<oneshot::Sender<Outcome>>,
    ) -> u64 {
        self.next_id += 1;
        self.queue.push_back(Queued { id: self.next_id, request, lane, done });
        self.next_id
    }

    /// Removes a request that was not written yet.
    pub(super) fn withdraw(&mut self, id: u64) -> bool {
        match self.queue.binary_search_by_key(&id, |queued| queued.id) {
            Ok(index) => self.queue.remove(index).is_some(),
            Err(_) => false,
        }
    }

    /// True when a read that is on its way will leave a watch on `path` in the same table of the server.
    pub(super) fn will_watch(&self, path: &str, kind: WatchKind) -> bool {
        let waiting = self.queue.iter().filter_map(|queued| WatchRequest::of(&queued.request));
        let written = self.in_flight.iter().filter_map(|in_flight| in_flight.watch.clone());
        waiting.chain(written).any(|watch| watch.path == path && watch.shares_table(kind))
    }

    /// The link is gone: nobody will answer what was written.
    pub(super) fn link_lost(&mut self, finished: &mut Vec<Finished>) {
        // The session's own requests are about the link that is gone.
        self.queue.retain(|queued| queued.done.is_some());
        for in_flight in self.in_flight.drain(..).rev() {
            match (in_flight.done, in_flight.again) {
                (Some(done), Some(request)) => {
                    let (id, lane) = (in_flight.id, in_flight.lane);
                    self.queue.push_front(Queued { id, request, lane, done: Some(done) });
                }
                (Some(done), None) if planted!(UnknownIsNotSent) => {
                    finished.push((done, Outcome::NotSent(Cause::LinkLost)));
                }
                (Some(done), None) => finished.push((done, Outcome::Unknown(Cause::LinkLost))),
                (None, _) => {}
            }
        }
    }

    /// Ends every request, except those of the lane to `keep`, with the session.
    pub(super) fn end(&mut self, end: SessionEnd, keep: Option<Lane>, finished: &mut Vec<Finished>) {
        for in_flight in &mut self.in_flight {
            if keep != Some(in_flight.lane)
                && let Some(done) = in_flight.done.take()
            {
                finished.push((done, Outcome::Unknown(Cause::Ended(end))));
            }
        }
        let (kept, ended): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(|queued| keep == Some(queued.lane));
        self.queue = kept;
        for queued in ended {
            if let Some(done) = queued.done {
                finished.push((done, Outcome::NotSent(Cause::Ended(end))));
            }
        }
    }
}

/// A frame above the servers' limit would make them drop the link, and everything in flight with it.
pub(super) fn check_size(request: &Request, limit: usize) -> Result<(), Cause> {
    /// No header and no field besides paths and data comes near this.
    const SMALL: usize = 16 * 1024;
    if request.payload_len() + SMALL <= limit {
        return Ok(());
    }
    let mut frame = BytesMut::new();
    RequestFrame::encode_parts(0, request, &mut frame);
    let size = frame.len() - 4;
    if size <= limit { Ok(()) } else { Err(Cause::TooLarge { size, limit }) }
}
