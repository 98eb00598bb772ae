use super::members::MemberId;
use super::traffic::Activity;
use crate::state::Reply;
use bytes::BytesMut;
use docent_proto::{Code, Record, ReplyHeader, write_frame};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Notify;

/// A link, with the bytes that wait to be written to it.
pub(crate) struct Link {
    pub(super) peer: SocketAddr,
    /// The member it came in through.
    pub(super) member: MemberId,
    pub(super) session: Option<i64>,
    /// The timeout granted on it.
    pub(super) timeout_ms: i32,
    /// The newest transaction that its client knows of.
    pub(super) seen: i64,
    pub(super) output: BytesMut,
    pub(super) ending: bool,
    /// Set when it waits for an answer of the leader that will not come on it: no request behind that is
    /// answered either.
    pub(super) held: bool,
    /// Requests that wait for the leader.
    pub(super) waiting: usize,
    pub(super) activity: Activity,
    pub(super) wake: Arc<Notify>,
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
            activity: Activity { since_ms: now, heard_ms: now, ..Activity::default() },
            wake: Arc::new(Notify::new()),
        }
    }

    /// Queues a reply, and returns its length in bytes.
    pub(super) fn reply(&mut self, number: i32, reply: &Reply) -> usize {
        const PREFIX: usize = 4;
        let before = self.output.len();
        let code = reply.result.as_ref().err().copied().unwrap_or(Code::OK);
        write_frame(&mut self.output, |out| {
            ReplyHeader { xid: number, zxid: reply.zxid, code }.write(out);
            if let Ok(response) = &reply.result {
                response.write(out);
            }
        });
        self.seen = self.seen.max(reply.zxid);
        self.ending |= reply.closes;
        self.output.len() - before - PREFIX
    }

    /// Requests that wait for an answer.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting
    }

    /// Bits of the actions that the link's task waits for, as ZooKeeper shows them: 1 to read, 4 to write.
    pub(super) fn interest(&self) -> u8 {
        u8::from(!self.ending) | u8::from(!self.output.is_empty()) << 2
    }
}

/// The open links by their number.
pub(crate) struct Links {
    links: BTreeMap<u64, Link>,
    /// The link of a session. A session may have one more at each follower that is cut off, which knows no
    /// better.
    by_session: HashMap<(MemberId, i64), u64>,
    last: u64,
    most: usize,
}

impl Links {
    pub(super) fn new(most: usize) -> Self {
        Self { links: BTreeMap::new(), by_session: HashMap::new(), last: 0, most }
    }

    /// True when there are as many as allowed.
    pub(super) fn is_full(&self) -> bool {
        self.links.len() >= self.most
    }

    /// Adds a link, and returns its number and its wake-up.
    pub(super) fn add(&mut self, peer: SocketAddr, member: MemberId, now: i64) -> (u64, Arc<Notify>) {
        let link = Link::new(peer, member, now);
        let wake = Arc::clone(&link.wake);
        self.last += 1;
        self.links.insert(self.last, link);
        (self.last, wake)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Link> {
        self.links.remove(&id)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Link> {
        self.links.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Link> {
        self.links.get_mut(&id)
    }

    /// The links in the order they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Link)> {
        self.links.iter().map(|(id, link)| (*id, link))
    }

    pub(super) fn ids(&self) -> Vec<u64> {
        self.links.keys().copied().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.links.len()
    }

    /// The links that came in through a member.
    pub(crate) fn of_member(&self, member: MemberId) -> Vec<u64> {
        self.links.iter().filter(|(_, link)| link.member == member).map(|(id, _)| *id).collect()
    }

    /// The link of a session in a world.
    pub(super) fn of_session(&self, world: MemberId, session: i64) -> Option<u64> {
        self.by_session.get(&(world, session)).copied()
    }

    /// Makes `id` the link of a session in a world.
    pub(super) fn enter_session(&mut self, world: MemberId, session: i64, id: u64) {
        self.by_session.insert((world, session), id);
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

    /// Begins the counts of a member's links anew.
    pub(super) fn reset_activity(&mut self, member: MemberId) {
        for link in self.links.values_mut().filter(|link| link.member == member) {
            link.activity.reset();
        }
    }

    /// Closes a link once its last bytes were written.
    pub(super) fn end(&mut self, id: u64) {
        if let Some(link) = self.get_mut(id) {
            link.ending = true;
        }
    }
}
