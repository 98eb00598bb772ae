use super::faults::Faults;
use super::links::Links;
use super::members::{LEADER, MemberId, Members, Role, View};
use super::pipe::Pipe;
use super::valve::Valve;
use crate::Limits;
use crate::config::{Config, Words};
use crate::log::Log;
use crate::state::{Effects, Events, State};
use crate::time::Clock;
use docent_proto::{Code, Record, ReplyHeader, xid};
use std::net::SocketAddr;

/// Maximum number of warnings per second, over all links.
const WARNINGS: u32 = 100;
/// ZooKeeper's default trace mask: requests, packets, sessions and warnings.
const TRACE_MASK: i64 = 0b1_0011_0010;

/// The leader's state, the links, and the members that accepted them.
pub(crate) struct Ensemble {
    pub(crate) state: State,
    pub(crate) links: Links,
    pub(crate) members: Members,
    pub(crate) faults: Faults,
    pub(super) limits: Limits,
    pub(super) words: Words,
    pub(super) clock: Clock,
    /// Log entries that are written once the ensemble is unlocked.
    pub(super) log: Log,
    /// Rate limit for warnings about all links.
    pub(super) warnings: Valve,
    /// Rate limit for warnings about connections that the operating system failed to accept.
    pub(super) failures: Valve,
    /// Trace mask that four-letter words read and set.
    pub(super) trace_mask: i64,
}

impl Ensemble {
    pub(super) fn new(config: &Config, state: State, clock: Clock) -> Self {
        Self {
            links: Links::new(&config.limits),
            members: Members::new(config.timeouts_ms(), config.dialect, clock.now_ms()),
            faults: Faults::default(),
            limits: config.limits.clone(),
            words: config.words.clone(),
            log: Log::default(),
            warnings: Valve::new(WARNINGS),
            failures: Valve::new(1),
            trace_mask: TRACE_MASK,
            clock,
            state,
        }
    }

    /// Adds a new link and returns its number; `None` if there are too many links, the member does not serve,
    /// or a fault refuses new links.
    pub(super) fn enter(&mut self, peer: SocketAddr, member: MemberId, now: i64) -> Option<u64> {
        if !self.serves(member) || self.faults.refuses_links || !self.make_room(peer) {
            self.count(member, |totals| totals.links_refused += 1);
            return None;
        }
        Some(self.links.add(peer, member, now))
    }

    /// Returns whether a member accepts links. Followers need a leader to do so.
    fn serves(&self, id: MemberId) -> bool {
        let has_leader = id == LEADER || !self.state.is_read_only();
        self.members.serves(id) && has_leader && !self.state.is_frozen()
    }

    /// Enters or leaves the mode in which the leader has lost its followers. Does nothing if the mode does
    /// not change.
    pub(crate) fn set_read_only(&mut self, read_only: bool, now: i64) {
        if self.state.is_read_only() != read_only {
            self.cut_all();
            self.members.lose_pipes();
            self.state.set_read_only(read_only, now);
        }
    }

    /// Returns the session of a link.
    pub(crate) fn session_of(&self, id: u64) -> Option<i64> {
        self.links.get(id).and_then(|link| link.session)
    }

    /// Closes a link immediately. Its session continues without a link.
    pub(crate) fn cut(&mut self, id: u64) {
        let Some(link) = self.links.remove(id) else { return };
        link.wake.notify_one();
        let Some(session) = link.session else { return };
        let world = self.members.world(link.member);
        if self.links.of_session(world, session) == Some(id) {
            self.links.leave_session(world, session);
            self.state_of(world).detach(session);
        }
    }

    /// Closes all links immediately, including those of followers.
    pub(crate) fn cut_all(&mut self) {
        for id in self.links.ids() {
            self.cut(id);
        }
    }

    pub(crate) fn cut_links_of(&mut self, id: MemberId) {
        for link in self.links.of_member(id) {
            self.cut(link);
        }
    }

    /// Returns the state of a [world](Members::world).
    pub(super) fn state_of(&mut self, world: MemberId) -> &mut State {
        match self.members.role_mut(world) {
            Some(Role::CutOff(view)) => &mut view.state,
            _ => &mut self.state,
        }
    }

    /// Returns the state that a member's clients see.
    pub(super) fn state_seen_by(&self, id: MemberId) -> &State {
        match self.members.role(id) {
            Some(Role::CutOff(view)) => &view.state,
            _ => &self.state,
        }
    }

    /// Adds a follower. By default, it grants the timeouts that the leader grants now.
    pub(crate) fn add_follower(
        &mut self,
        timeouts_ms: Option<(i32, i32)>,
        lag_ms: i64,
        now: i64,
    ) -> MemberId {
        let id = self.members.add_follower(timeouts_ms, lag_ms, now);
        self.keep_past();
        id
    }

    /// Removes a follower from the members and closes its links.
    pub(super) fn remove_follower(&mut self, id: MemberId) {
        self.cut_links_of(id);
        self.members.remove(id);
        self.keep_past();
    }

    /// Sets by how much a member lags behind the leader.
    pub(crate) fn set_lag_ms(&mut self, id: MemberId, lag_ms: i64) {
        self.members.set_lag_ms(id, lag_ms);
        self.keep_past();
    }

    /// Makes the leader's state keep past trees for the longest lag of a member.
    fn keep_past(&mut self) {
        self.state.keep_past(self.members.longest_lag_ms());
    }

    /// Records that a member received something from a session.
    pub(super) fn note_contact(&mut self, id: MemberId, session: i64, timeout_ms: i32, now: i64) {
        match self.members.role_mut(id) {
            Some(Role::Leader) => self.state.touch(session, timeout_ms, now),
            Some(Role::Follower(heard_from)) => {
                heard_from.insert(session, timeout_ms);
            }
            Some(Role::CutOff(view)) => {
                if let Some(pipe) = &mut view.pipe {
                    pipe.heard_from.insert(session, timeout_ms);
                }
            }
            Some(Role::Down) | None => {}
        }
    }

    /// Reports to the leader from which sessions a follower has received something.
    pub(super) fn relay(&mut self, id: MemberId, now: i64) {
        let Some(Role::Follower(heard_from)) = self.members.role_mut(id) else { return };
        for (session, timeout_ms) in std::mem::take(heard_from) {
            self.state.touch(session, timeout_ms, now);
        }
    }

    /// Cuts a follower off from the leader. If it `holds` messages, sessions that it had not relayed yet wait
    /// in its pipe; otherwise this information is lost.
    pub(crate) fn cut_off(&mut self, id: MemberId, until_ms: i64, holds: bool) {
        let Some(Role::Follower(heard_from)) = self.members.role_mut(id) else { return };
        let heard_from = std::mem::take(heard_from);
        let pipe = holds.then(|| Pipe::new(heard_from));
        let view = Box::new(View { state: self.state.snapshot(), until_ms, pipe });
        for link in self.links.of_member(id) {
            let Some(session) = self.links.get(link).and_then(|link| link.session) else { continue };
            self.links.leave_session(LEADER, session);
            self.links.enter_session(id, session, link);
            self.state.detach(session);
        }
        self.members.set_role(id, Role::CutOff(view));
    }

    /// Makes a follower stop serving.
    pub(crate) fn give_up(&mut self, id: MemberId) {
        self.cut_links_of(id);
        self.members.set_role(id, Role::Down);
    }

    /// Reconnects a follower to its leader, and delivers the messages that waited in the follower.
    pub(crate) fn rejoin(&mut self, id: MemberId, now: i64) {
        if !self.members.is_apart(id) {
            return;
        }
        self.cut_links_of(id);
        let mut pipe = self.members.holding(id).map(|(_, pipe)| std::mem::take(pipe)).unwrap_or_default();
        self.members.set_role(id, Role::Follower(std::mem::take(&mut pipe.heard_from)));
        self.deliver(id, pipe, now);
    }

    /// Delivers the messages that waited in a follower to the leader, sessions first. ZooKeeper's leader
    /// handles session messages immediately, while writes wait for another thread (ZOOKEEPER-2886).
    fn deliver(&mut self, id: MemberId, pipe: Pipe, now: i64) {
        for (request, timeout_ms) in &pipe.attaches {
            self.state.revalidate(request, *timeout_ms, id, now);
        }
        for held in pipe.writes {
            let mut effects = Effects::default();
            held.apply(&mut self.state, id, now, &mut effects);
            self.carry_out(&effects);
        }
    }

    /// Runs a step on the leader's state, in at most one transaction, and applies its effects.
    pub(crate) fn take_step<R>(&mut self, step: impl FnOnce(&mut State, &mut Effects) -> R) -> R {
        let mut effects = Effects::default();
        let result = step(&mut self.state, &mut effects);
        self.carry_out(&effects);
        result
    }

    /// Applies the effects of a step of the leader's state.
    pub(crate) fn carry_out(&mut self, effects: &Effects) {
        self.send_events(LEADER, &effects.events);
        self.expel_flooded(LEADER, effects);
        self.leave_ended(effects, None);
    }

    pub(super) fn send_events(&mut self, world: MemberId, events: &Events) {
        let zxid = self.state_of(world).zxid();
        for event in events.as_slice() {
            let number = self.state_of(world).number_of(event);
            let id = self.links.of_session(world, event.session);
            let Some(link) = id.and_then(|id| self.links.get_mut(id)) else { continue };
            link.event(|out| {
                ReplyHeader { xid: xid::NOTIFICATION, zxid: number, code: Code::OK }.write(out);
                event.to_watch_event().write(out);
            });
            link.seen = link.seen.max(zxid);
            link.wake.notify_one();
            if let Some(id) = id {
                self.count_sent(id, None);
                self.admit_bytes(id);
            }
        }
    }

    /// Closes the links of sessions that ended, except the link that still needs its reply. Followers that
    /// are cut off do not learn of the end.
    pub(super) fn leave_ended(&mut self, effects: &Effects, except: Option<u64>) {
        for session in &effects.ended {
            match self.links.of_session(LEADER, *session) {
                Some(id) if Some(id) != except => self.cut(id),
                _ => {}
            }
        }
    }
}
