use super::link::Place;
use super::member::{LEADER, Member, MemberId, Role};
use crate::config::Config;
use crate::state::State;
use crate::time::Clock;
use bytes::BytesMut;
use docent_proto::Frames;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes waiting to be written to a link above which no more requests of it are looked at.
const FULL: usize = 256 << 10;

/// State that all links share, and for each link the bytes that wait to be written. Both are under one lock,
/// so that events and replies are queued in the order of the changes they tell of.
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    pub(crate) clock: Clock,
    frames: Frames,
}

pub(crate) struct Inner {
    pub(crate) state: State,
    pub(super) links: BTreeMap<u64, Link>,
    /// The link of a session. A session may have one more at each follower that is cut off, which knows no
    /// better.
    pub(super) by_session: HashMap<(MemberId, i64), u64>,
    pub(super) members: BTreeMap<MemberId, Member>,
    pub(super) last_member: MemberId,
    last_link: u64,
    connections: usize,
}

pub(super) struct Link {
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
    pub(super) wake: Arc<Notify>,
}

/// Next action of a link's task after its input was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Read on.
    Hungry,
    /// Write first: the client does not keep up.
    Full,
    /// Write what there is, then close.
    Ending,
    /// Close now.
    Cut,
}

impl Hub {
    pub(crate) fn new(config: Config) -> Self {
        let clock = config.clock.clone().unwrap_or_else(Clock::of_tokio);
        let frames = Frames::new(config.limits.frame_bytes);
        let connections = config.limits.connections;
        let leader = Member::new(config.timeouts_ms(), Role::Leader);
        let state = State::new(config, clock.now_ms());
        let inner = Inner {
            state,
            links: BTreeMap::new(),
            by_session: HashMap::new(),
            members: BTreeMap::from([(LEADER, leader)]),
            last_member: LEADER,
            last_link: 0,
            connections,
        };
        Self { inner: Mutex::new(inner), clock, frames }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held must not take every other link down with it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new link in; `None` when there are as many as allowed, or the member does not serve.
    pub(crate) fn enter(hub: &Arc<Self>, peer: SocketAddr, member: MemberId) -> Option<Place> {
        let mut inner = hub.lock();
        if inner.links.len() >= inner.connections || !inner.serves(member) {
            return None;
        }
        inner.last_link += 1;
        let (id, wake) = (inner.last_link, Arc::new(Notify::new()));
        let link = Link {
            peer,
            member,
            session: None,
            timeout_ms: 0,
            seen: 0,
            output: BytesMut::new(),
            ending: false,
            held: false,
            wake: Arc::clone(&wake),
        };
        inner.links.insert(id, link);
        Some(Place { hub: Arc::clone(hub), id, wake })
    }

    /// Answers all complete requests in `input`, until there are none or the client has to read first.
    pub(crate) fn receive(&self, id: u64, input: &mut BytesMut) -> Progress {
        let mut inner = self.lock();
        loop {
            let Some(link) = inner.links.get(&id) else { return Progress::Cut };
            if link.ending {
                return Progress::Ending;
            }
            if link.output.len() >= FULL {
                return Progress::Full;
            }
            let (session, member, held) = (link.session, link.member, link.held);
            // Requests behind the held one may wait for the leader, too; behind a handshake none do.
            if held && (session.is_none() || inner.holding(member).is_none()) {
                input.clear();
                return Progress::Hungry;
            }
            if session.is_none() && inner.answer_word(id, input) {
                continue;
            }
            let frame = match self.frames.next(input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Progress::Hungry,
                Err(error) => {
                    tracing::debug!(%error, "link closed");
                    inner.cut(id);
                    return Progress::Cut;
                }
            };
            let now = self.clock.now_ms();
            match session {
                None => inner.handshake(id, frame, now),
                Some(session) => inner.request(id, session, frame, now),
            }
        }
    }

    /// Takes the bytes that wait to be written to a link.
    pub(crate) fn take_output(&self, id: u64) -> BytesMut {
        self.lock().links.get_mut(&id).map(|link| link.output.split()).unwrap_or_default()
    }

    /// True once the link has a session.
    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().links.get(&id).is_some_and(|link| link.session.is_some())
    }
}

impl Inner {
    /// Closes a link now. Its session goes on without it.
    pub(crate) fn cut(&mut self, id: u64) {
        let Some(link) = self.links.remove(&id) else { return };
        link.wake.notify_one();
        let Some(session) = link.session else { return };
        let world = self.world(link.member);
        if self.by_session.get(&(world, session)) == Some(&id) {
            self.by_session.remove(&(world, session));
            self.state_of(world).detach(session);
        }
    }

    /// Closes all links now, also those of followers.
    pub(crate) fn cut_all(&mut self) {
        let ids: Vec<u64> = self.links.keys().copied().collect();
        for id in ids {
            self.cut(id);
        }
    }

    pub(crate) fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The links that came in through a member.
    pub(crate) fn links_of(&self, member: MemberId) -> Vec<u64> {
        self.links.iter().filter(|(_, link)| link.member == member).map(|(id, _)| *id).collect()
    }

    pub(super) fn session_of(&self, link: u64) -> Option<i64> {
        self.links.get(&link)?.session
    }
}
