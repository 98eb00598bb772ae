use super::buffers::Outgoing;
use super::members::MemberId;
use super::room::Room;
use super::shape::SharedShape;
use super::traffic::Activity;
use super::valve::Valve;
use crate::Limits;
use crate::state::Reply;
use bytes::BytesMut;
use docent_proto::{Code, Record, ReplyHeader, write_frame};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Notify;

/// Maximum size of a buffer that a link keeps while its buffer is empty, in bytes.
pub(super) const KEPT: usize = 16 << 10;

/// Bytes of replies that each link may queue without asking for [room](Room), besides those being written.
/// Small requests are therefore answered no matter how much is queued in other links, or ahead of the
/// requests in their own link.
pub(super) const SMALL: usize = 16 << 10;

/// A link, with the output queued for it.
pub(crate) struct Link {
    pub(super) peer: SocketAddr,
    /// The member that accepted the link.
    pub(super) member: MemberId,
    pub(super) session: Option<i64>,
    /// The timeout granted on the link.
    pub(super) timeout_ms: i32,
    /// The latest transaction that the client knows of.
    pub(super) seen: i64,
    pub(super) output: BytesMut,
    pub(super) ending: bool,
    /// Whether the link waits for an answer of the leader that it will never get. No later request is
    /// answered either.
    pub(super) held: bool,
    /// Number of requests that wait for the leader.
    pub(super) waiting: usize,
    pub(super) activity: Activity,
    /// Number of replies in `output`.
    replies: usize,
    /// Bytes of events in `output`.
    events: usize,
    /// Bytes that were received and are not answered yet.
    coming: usize,
    /// Bytes reserved for a large request that is being received.
    granted: usize,
    /// Whether the next request waits for its client to read, or for room.
    pub(super) is_full: bool,
    /// Time at which the client last read something, or had nothing to read.
    moved_ms: i64,
    /// Number of bytes written to the link.
    written: u64,
    /// Work done for the link since other links had their turn.
    pub(super) work: usize,
    /// Output that the link's task has taken and not written yet.
    taken: Taken,
    /// The queued bytes when they were last counted.
    counted: Counted,
    pub(super) warnings: Valve,
    pub(super) wake: Arc<Notify>,
    pub(super) shape: SharedShape,
}

/// Output that is being written.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    bytes: usize,
    replies: usize,
    /// Bytes of events included in `bytes`.
    events: usize,
}

/// Bytes queued in a link, by the limit that applies to them.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    /// Bytes of replies, except the small ones that every link may queue.
    replies: usize,
    /// Bytes reserved for a large request.
    request: usize,
    events: usize,
}

impl Link {
    fn new(peer: SocketAddr, member: MemberId, now: i64) -> Self {
        Self {
            peer,
            member,
            session: None,
            timeout_ms: 0,
            seen: 0,
            output: BytesMut::new(),
            ending: false,
            held: false,
            waiting: 0,
            replies: 0,
            events: 0,
            coming: 0,
            granted: 0,
            is_full: false,
            moved_ms: now,
            written: 0,
            work: 0,
            taken: Taken::default(),
            counted: Counted::default(),
            warnings: Valve::new(1),
            activity: Activity { since_ms: now, heard_ms: now, ..Activity::default() },
            wake: Arc::new(Notify::new()),
            shape: SharedShape::default(),
        }
    }

    /// Queues a reply, and returns its length in bytes.
    pub(super) fn reply(&mut self, number: i32, reply: &Reply) -> usize {
        const PREFIX: usize = 4;
        let before = self.output.len();
        self.output.reserve(reply.len_hint());
        let code = reply.result.as_ref().err().copied().unwrap_or(Code::OK);
        write_frame(&mut self.output, |out| {
            ReplyHeader { xid: number, zxid: reply.zxid, code }.write(out);
            if let Ok(response) = &reply.result {
                response.write(out);
            }
        });
        self.seen = self.seen.max(reply.zxid);
        self.ending |= reply.closes;
        self.replies += 1;
        self.output.len() - before - PREFIX
    }

    /// Returns the number of requests that wait for an answer, and of answers that are not written yet.
    pub(super) fn under_way(&self) -> usize {
        self.waiting + self.replies + self.taken.replies
    }

    /// Queues an event that `write` encodes.
    pub(super) fn event(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.output.len();
        write_frame(&mut self.output, write);
        self.events += self.output.len() - before;
    }

    /// Removes and returns the queued output. A large buffer is not reused.
    pub(super) fn take_output(&mut self, now: i64) -> BytesMut {
        if self.taken.bytes == 0 {
            self.moved_ms = now;
        }
        self.taken.bytes += self.output.len();
        self.taken.replies += std::mem::take(&mut self.replies);
        self.taken.events += std::mem::take(&mut self.events);
        if self.output.capacity() > KEPT { std::mem::take(&mut self.output) } else { self.output.split() }
    }

    /// Records how much the link's task has written, and how much it still holds.
    pub(super) fn wrote(&mut self, output: &Outgoing, now: i64) {
        if self.written != output.written() {
            (self.written, self.moved_ms) = (output.written(), now);
        }
        match output.held() {
            0 => self.taken = Taken::default(),
            bytes => self.taken.bytes = bytes,
        }
    }

    /// Records the number of received, unanswered bytes. Returns whether it has increased.
    pub(super) fn coming(&mut self, bytes: usize) -> bool {
        bytes > std::mem::replace(&mut self.coming, bytes)
    }

    /// Returns the number of bytes that are queued or being written.
    pub(super) fn queued(&self) -> usize {
        self.output.len() + self.taken.bytes
    }

    /// Returns whether the client has read nothing since `since_ms`, although more than small replies are
    /// queued for it.
    fn is_stalled(&self, since_ms: i64) -> bool {
        self.counted.replies > 0 && self.moved_ms <= since_ms
    }

    /// Counts the queued bytes.
    fn count(&self) -> Counted {
        let events = self.events + self.taken.events;
        let replies = self.queued().saturating_sub(events).saturating_sub(SMALL);
        Counted { replies, request: self.granted, events }
    }

    /// Returns the number of requests that wait for the leader.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting
    }

    /// Returns ZooKeeper's interest bits: 1 if the link's task waits to read, 4 if it waits to write.
    pub(super) fn interest(&self) -> u8 {
        u8::from(!self.ending) | u8::from(!self.output.is_empty()) << 2
    }
}

/// The open links by number.
pub(crate) struct Links {
    links: BTreeMap<u64, Link>,
    /// The link of each session. A session may have a further link at each follower that is cut off, which
    /// does not know that the session has moved.
    by_session: HashMap<(MemberId, i64), u64>,
    without_session: BTreeSet<u64>,
    last: u64,
    /// Room for replies in all links.
    pub(super) replies: Room,
    /// Room for large requests that are being received.
    pub(super) requests: Room,
    /// Bytes of events in all links.
    events: usize,
    /// Bytes that tasks of cut links hold until they end, by link and in total.
    leaving: (HashMap<u64, usize>, usize),
}

impl Links {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            links: BTreeMap::new(),
            by_session: HashMap::new(),
            without_session: BTreeSet::new(),
            last: 0,
            replies: Room::new(limits.queued_replies()),
            requests: Room::new(limits.queued_requests()),
            events: 0,
            leaving: (HashMap::new(), 0),
        }
    }

    /// Recounts the bytes queued in a link and returns them. Wakes the links whose turn it is to get room.
    pub(super) fn settle(&mut self, id: u64) -> Option<usize> {
        let link = self.links.get_mut(&id)?;
        let (before, now) = (link.counted, link.count());
        link.counted = now;
        let bytes = link.coming + link.queued();
        self.recount(before, now);
        Some(bytes)
    }

    fn recount(&mut self, before: Counted, now: Counted) {
        self.replies.replace(before.replies, now.replies);
        self.requests.replace(before.request, now.request);
        self.events = self.events + now.events - before.events;
        for id in [self.replies.turn(), self.requests.turn()].into_iter().flatten() {
            if let Some(link) = self.links.get(&id) {
                link.wake.notify_one();
            }
        }
    }

    /// Returns the number of bytes queued in all links.
    pub(super) fn waiting(&self) -> usize {
        self.replies.used() + self.requests.used() + self.events
    }

    /// Returns the number of event bytes queued in all links.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    /// Reserves the bytes of a request that is being received. Returns `false` if the link must wait for its
    /// turn.
    pub(super) fn reserve_for_request(&mut self, id: u64, bytes: usize) -> bool {
        let Some(link) = self.links.get_mut(&id) else { return false };
        if bytes <= SMALL || link.granted >= bytes {
            return true;
        }
        if !self.requests.reserve(id, bytes) {
            return false;
        }
        link.granted = bytes;
        self.settle(id);
        true
    }

    /// Releases the bytes of a request that has been answered.
    pub(super) fn end_request(&mut self, id: u64) {
        if let Some(link) = self.links.get_mut(&id).filter(|link| link.granted > 0) {
            link.granted = 0;
            self.settle(id);
        }
    }

    /// Removes a link from the queue for reply room.
    pub(super) fn leave_line(&mut self, id: u64) {
        self.replies.leave(id);
        self.recount(Counted::default(), Counted::default());
    }

    /// Returns the links that wait for room.
    pub(super) fn in_line(&self) -> Vec<u64> {
        self.replies.waiting().chain(self.requests.waiting()).collect()
    }

    /// Returns the links whose clients have read nothing since `since_ms`, although replies are queued for
    /// them.
    pub(super) fn stalled(&self, since_ms: i64) -> Vec<u64> {
        let stalled = self.links.iter().filter(|(_, link)| link.is_stalled(since_ms));
        stalled.map(|(id, _)| *id).collect()
    }

    /// Returns the number of bytes that tasks of cut links hold until they end.
    pub(super) fn leaving(&self) -> usize {
        self.leaving.1
    }

    /// Records that the task of a link has ended.
    pub(super) fn task_ended(&mut self, id: u64) {
        self.leaving.1 -= self.leaving.0.remove(&id).unwrap_or_default();
    }

    /// Returns the link with the most queued event bytes.
    pub(super) fn most_notified(&self) -> Option<u64> {
        self.links.iter().max_by_key(|(_, link)| link.counted.events).map(|(id, _)| *id)
    }

    /// Returns the oldest link without a session.
    pub(super) fn oldest_without_session(&self) -> Option<u64> {
        self.without_session.first().copied()
    }

    /// Adds a link, and returns its number.
    pub(super) fn add(&mut self, peer: SocketAddr, member: MemberId, now: i64) -> u64 {
        self.last += 1;
        self.links.insert(self.last, Link::new(peer, member, now));
        self.without_session.insert(self.last);
        self.last
    }

    /// Returns the client's address of a link, its wake-up and its shape.
    pub(crate) fn parts(&self, id: u64) -> Option<(SocketAddr, Arc<Notify>, SharedShape)> {
        self.get(id).map(|link| (link.peer, Arc::clone(&link.wake), link.shape.clone()))
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Link> {
        let link = self.links.remove(&id)?;
        self.without_session.remove(&id);
        self.replies.leave(id);
        self.requests.leave(id);
        self.recount(link.counted, Counted::default());
        let held = link.coming + link.taken.bytes;
        if held > 0 {
            self.leaving.0.insert(id, held);
            self.leaving.1 += held;
        }
        Some(link)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Link> {
        self.links.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Link> {
        self.links.get_mut(&id)
    }

    /// Iterates over the links in the order of arrival.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Link)> {
        self.links.iter().map(|(id, link)| (*id, link))
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.links.keys().copied().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.links.len()
    }

    /// Returns the links that a member accepted.
    pub(crate) fn of_member(&self, member: MemberId) -> Vec<u64> {
        self.links.iter().filter(|(_, link)| link.member == member).map(|(id, _)| *id).collect()
    }

    /// Returns the link of a session in a world.
    pub(crate) fn of_session(&self, world: MemberId, session: i64) -> Option<u64> {
        self.by_session.get(&(world, session)).copied()
    }

    /// Makes `id` the link of a session in a world.
    pub(super) fn enter_session(&mut self, world: MemberId, session: i64, id: u64) {
        self.by_session.insert((world, session), id);
        self.without_session.remove(&id);
    }

    pub(super) fn leave_session(&mut self, world: MemberId, session: i64) {
        self.by_session.remove(&(world, session));
    }

    /// Leaves a link without any further answer.
    pub(super) fn hold(&mut self, id: u64) {
        if let Some(link) = self.get_mut(id) {
            link.held = true;
            link.waiting += 1;
        }
    }

    /// Resets the counters of a member's links.
    pub(super) fn reset_activity(&mut self, member: MemberId) {
        for link in self.links.values_mut().filter(|link| link.member == member) {
            link.activity.reset();
        }
    }

    /// Closes a link once its remaining output is written.
    pub(super) fn end(&mut self, id: u64) {
        if let Some(link) = self.get_mut(id) {
            link.ending = true;
        }
    }
}
