//! The servers of the ensemble that is played: the leader, which is the server itself, and its followers.

use super::hub::{Hub, Inner};
use super::pipe::Pipe;
use crate::state::State;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type MemberId = u32;

/// The server itself.
pub(crate) const LEADER: MemberId = 0;

/// One server of the ensemble.
pub(crate) struct Member {
    /// The shortest and the longest session timeout it grants.
    pub(super) timeouts_ms: (i32, i32),
    /// Time by which it is behind the leader while it follows.
    pub(super) lag_ms: i64,
    pub(super) role: Role,
}

/// Relation of a member to the leader.
pub(crate) enum Role {
    Leader,
    /// It relays the sessions it heard from: those since the last relay, with the timeout of the link they
    /// were heard on.
    Follower(BTreeMap<i64, i32>),
    /// It has lost the leader and does not know it yet.
    CutOff(Box<View>),
    /// It knows, and serves nobody.
    Down,
}

/// View that a follower that was cut off goes on to show.
pub(crate) struct View {
    pub(super) state: State,
    /// Time at which it gives up.
    until_ms: i64,
    /// Messages that wait for the leader; `None` where they are lost.
    pub(super) pipe: Option<Pipe>,
}

impl Member {
    pub(crate) fn new(timeouts_ms: (i32, i32), role: Role) -> Self {
        Self { timeouts_ms, lag_ms: 0, role }
    }
}

impl Inner {
    /// Adds a follower; without timeouts of its own it grants those that the leader grants now.
    pub(crate) fn add_follower(&mut self, timeouts_ms: Option<(i32, i32)>, lag_ms: i64) -> MemberId {
        let timeouts_ms = timeouts_ms.unwrap_or_else(|| self.timeouts_ms(LEADER));
        self.last_member += 1;
        self.members.insert(self.last_member, Member::new(timeouts_ms, Role::Follower(BTreeMap::new())));
        self.set_lag_ms(self.last_member, lag_ms);
        self.last_member
    }

    /// True when a member takes links in. Without a leader its followers do not either.
    pub(super) fn serves(&self, id: MemberId) -> bool {
        let role = self.members.get(&id).map(|member| &member.role);
        !matches!(role, None | Some(Role::Down)) && !self.state.is_frozen()
    }

    pub(super) fn timeouts_ms(&self, id: MemberId) -> (i32, i32) {
        self.members.get(&id).map(|member| member.timeouts_ms).unwrap_or_default()
    }

    pub(crate) fn set_timeouts_ms(&mut self, id: MemberId, timeouts_ms: (i32, i32)) {
        if let Some(member) = self.members.get_mut(&id) {
            member.timeouts_ms = timeouts_ms;
        }
    }

    /// Time by which a member is behind the leader.
    pub(super) fn lag_ms(&self, id: MemberId) -> i64 {
        self.members.get(&id).map_or(0, |member| member.lag_ms)
    }

    pub(crate) fn set_lag_ms(&mut self, id: MemberId, lag_ms: i64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.lag_ms = lag_ms;
        }
        self.keep_past();
    }

    /// Makes the leader's state keep the past that its members show.
    fn keep_past(&mut self) {
        let longest = self.members.values().map(|member| member.lag_ms).max();
        self.state.keep_past(longest.unwrap_or(0));
    }

    /// Id of the member whose state the links of a member see: its own while it is cut off, else the
    /// leader's.
    pub(super) fn world(&self, id: MemberId) -> MemberId {
        match self.members.get(&id).map(|member| &member.role) {
            Some(Role::CutOff(_)) => id,
            _ => LEADER,
        }
    }

    /// The state of a [world](Self::world).
    pub(super) fn state_of(&mut self, world: MemberId) -> &mut State {
        match self.members.get_mut(&world).map(|member| &mut member.role) {
            Some(Role::CutOff(view)) => &mut view.state,
            _ => &mut self.state,
        }
    }

    /// Takes note that a session was heard from over a member.
    pub(super) fn hear(&mut self, id: MemberId, session: i64, timeout_ms: i32, now: i64) {
        match self.members.get_mut(&id).map(|member| &mut member.role) {
            Some(Role::Leader) => self.state.touch(session, timeout_ms, now),
            Some(Role::Follower(heard)) => {
                heard.insert(session, timeout_ms);
            }
            Some(Role::CutOff(view)) => {
                if let Some(pipe) = &mut view.pipe {
                    pipe.heard.insert(session, timeout_ms);
                }
            }
            Some(Role::Down) | None => {}
        }
    }

    /// Tells the leader which sessions a follower has heard from.
    pub(super) fn relay(&mut self, id: MemberId, now: i64) {
        let Some(Role::Follower(heard)) = self.members.get_mut(&id).map(|member| &mut member.role) else {
            return;
        };
        for (session, timeout_ms) in std::mem::take(heard) {
            self.state.touch(session, timeout_ms, now);
        }
    }

    /// Cuts a follower and the leader off from each other. Sessions it had not relayed yet wait if it `holds`
    /// messages, and are lost otherwise.
    pub(crate) fn cut_off(&mut self, id: MemberId, until_ms: i64, holds: bool) {
        let Some(Role::Follower(heard)) = self.members.get_mut(&id).map(|member| &mut member.role) else {
            return;
        };
        let heard = std::mem::take(heard);
        let pipe = holds.then(|| Pipe::new(heard));
        let view = Box::new(View { state: self.state.snapshot(), until_ms, pipe });
        let attached = self.links_of(id).into_iter().filter_map(|link| Some((link, self.session_of(link)?)));
        for (link, session) in attached.collect::<Vec<_>>() {
            self.by_session.remove(&(LEADER, session));
            self.by_session.insert((id, session), link);
            self.state.detach(session);
        }
        self.set_role(id, Role::CutOff(view));
    }

    /// State and pipe of a follower that is cut off, if its clients' messages wait there.
    pub(super) fn holding(&mut self, id: MemberId) -> Option<(&State, &mut Pipe)> {
        match self.members.get_mut(&id).map(|member| &mut member.role) {
            Some(Role::CutOff(view)) => view.pipe.as_mut().map(|pipe| (&view.state, pipe)),
            _ => None,
        }
    }

    pub(crate) fn held_count(&mut self, id: MemberId) -> usize {
        self.holding(id).map_or(0, |(_, pipe)| pipe.len())
    }

    /// Loses the leader, and with it the messages that wait in followers.
    pub(super) fn lose_pipes(&mut self) {
        for member in self.members.values_mut() {
            if let Role::CutOff(view) = &mut member.role {
                view.pipe = view.pipe.take().map(|_| Pipe::default());
            }
        }
    }

    /// Time at which a follower that is cut off gives up.
    pub(super) fn gives_up_at(&self, id: MemberId) -> Option<i64> {
        match &self.members.get(&id)?.role {
            Role::CutOff(view) => Some(view.until_ms),
            _ => None,
        }
    }

    /// Stops a follower from serving.
    pub(crate) fn give_up(&mut self, id: MemberId) {
        self.cut_links_of(id);
        self.set_role(id, Role::Down);
    }

    /// Brings a follower that was cut off back to its leader, which gets the messages that waited there.
    pub(crate) fn rejoin(&mut self, id: MemberId, now: i64) {
        let Some(Role::CutOff(_) | Role::Down) = self.members.get(&id).map(|member| &member.role) else {
            return;
        };
        self.cut_links_of(id);
        let mut pipe = self.holding(id).map(|(_, pipe)| std::mem::take(pipe)).unwrap_or_default();
        self.set_role(id, Role::Follower(std::mem::take(&mut pipe.heard)));
        self.deliver(id, pipe, now);
    }

    fn set_role(&mut self, id: MemberId, role: Role) {
        if let Some(member) = self.members.get_mut(&id) {
            member.role = role;
        }
    }

    pub(crate) fn cut_links_of(&mut self, id: MemberId) {
        for link in self.links_of(id) {
            self.cut(link);
        }
    }
}

/// A follower's place in the ensemble. On drop: its links are closed, and it is no longer a member.
pub(crate) struct Membership {
    pub(crate) hub: Arc<Hub>,
    pub(crate) id: MemberId,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        inner.cut_links_of(self.id);
        inner.members.remove(&self.id);
        inner.keep_past();
    }
}
