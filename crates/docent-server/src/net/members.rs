//! The members of the emulated ensemble: the leader, which is the server itself, and its followers.

use super::pipe::Pipe;
use super::traffic::Totals;
use crate::Dialect;
use crate::state::State;
use std::collections::BTreeMap;

pub(crate) type MemberId = u32;

/// The server itself.
pub(crate) const LEADER: MemberId = 0;

/// One member of the ensemble.
pub(super) struct Member {
    /// The minimum and maximum session timeout that the member grants.
    pub(super) timeouts_ms: (i32, i32),
    /// How far the member lags behind the leader while it follows, in milliseconds.
    lag_ms: i64,
    role: Role,
    dialect: Dialect,
    /// The port that the member listens on.
    pub(super) port: u16,
    /// Time at which the member started.
    pub(super) since_ms: i64,
    pub(super) totals: Totals,
}

impl Member {
    fn new(timeouts_ms: (i32, i32), lag_ms: i64, role: Role, dialect: Dialect, since_ms: i64) -> Self {
        Self { timeouts_ms, lag_ms, role, dialect, port: 0, since_ms, totals: Totals::default() }
    }
}

/// Relation of a member to the leader.
pub(crate) enum Role {
    Leader,
    /// The member relays the sessions that it received something from. The map contains those since the last
    /// relay, with the timeout of the link that each used.
    Follower(BTreeMap<i64, i32>),
    /// The member has lost the leader and has not noticed yet.
    CutOff(Box<View>),
    /// The member has noticed that it lost the leader, and does not serve clients.
    Down,
}

/// The view that a follower keeps showing after it was cut off.
pub(crate) struct View {
    pub(super) state: State,
    /// Time at which the follower stops serving.
    pub(super) until_ms: i64,
    /// Messages that wait for the leader; `None` if they are lost.
    pub(super) pipe: Option<Pipe>,
}

/// The members by id.
pub(crate) struct Members {
    members: BTreeMap<MemberId, Member>,
    last: MemberId,
}

impl Members {
    /// Creates an ensemble that consists of the leader alone.
    pub(super) fn new(timeouts_ms: (i32, i32), dialect: Dialect, now: i64) -> Self {
        let leader = Member::new(timeouts_ms, 0, Role::Leader, dialect, now);
        Self { members: BTreeMap::from([(LEADER, leader)]), last: LEADER }
    }

    /// Adds a follower. By default, it grants the timeouts that the leader grants now.
    pub(super) fn add_follower(
        &mut self,
        timeouts_ms: Option<(i32, i32)>,
        lag_ms: i64,
        now: i64,
    ) -> MemberId {
        let timeouts_ms = timeouts_ms.unwrap_or_else(|| self.timeouts_ms(LEADER));
        self.last += 1;
        let role = Role::Follower(BTreeMap::new());
        let dialect = self.dialect(LEADER);
        self.members.insert(self.last, Member::new(timeouts_ms, lag_ms, role, dialect, now));
        self.last
    }

    pub(super) fn get(&self, id: MemberId) -> Option<&Member> {
        self.members.get(&id)
    }

    /// Returns the counters of all traffic on a member's links.
    pub(super) fn totals_mut(&mut self, id: MemberId) -> Option<&mut Totals> {
        self.members.get_mut(&id).map(|member| &mut member.totals)
    }

    /// Records the port that a member listens on.
    pub(crate) fn set_port(&mut self, id: MemberId, port: u16) {
        if let Some(member) = self.members.get_mut(&id) {
            member.port = port;
        }
    }

    /// Returns the number of members.
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    pub(super) fn remove(&mut self, id: MemberId) {
        self.members.remove(&id);
    }

    /// Returns whether a member accepts links as long as there is a leader.
    pub(super) fn serves(&self, id: MemberId) -> bool {
        !matches!(self.role(id), None | Some(Role::Down))
    }

    pub(super) fn timeouts_ms(&self, id: MemberId) -> (i32, i32) {
        self.members.get(&id).map(|member| member.timeouts_ms).unwrap_or_default()
    }

    pub(crate) fn set_timeouts_ms(&mut self, id: MemberId, timeouts_ms: (i32, i32)) {
        if let Some(member) = self.members.get_mut(&id) {
            member.timeouts_ms = timeouts_ms;
        }
    }

    /// Returns the dialect that a member answers its clients in.
    pub(crate) fn dialect(&self, id: MemberId) -> Dialect {
        self.members.get(&id).map(|member| member.dialect).unwrap_or_default()
    }

    pub(crate) fn set_dialect(&mut self, id: MemberId, dialect: Dialect) {
        if let Some(member) = self.members.get_mut(&id) {
            member.dialect = dialect;
        }
    }

    /// Returns how far a member lags behind the leader, in milliseconds.
    pub(super) fn lag_ms(&self, id: MemberId) -> i64 {
        self.members.get(&id).map_or(0, |member| member.lag_ms)
    }

    pub(super) fn set_lag_ms(&mut self, id: MemberId, lag_ms: i64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.lag_ms = lag_ms;
        }
    }

    /// Returns the longest lag of any member, in milliseconds.
    pub(super) fn longest_lag_ms(&self) -> i64 {
        self.members.values().map(|member| member.lag_ms).max().unwrap_or(0)
    }

    pub(super) fn role(&self, id: MemberId) -> Option<&Role> {
        self.members.get(&id).map(|member| &member.role)
    }

    pub(super) fn role_mut(&mut self, id: MemberId) -> Option<&mut Role> {
        self.members.get_mut(&id).map(|member| &mut member.role)
    }

    pub(super) fn set_role(&mut self, id: MemberId, role: Role) {
        if let Some(member) = self.members.get_mut(&id) {
            member.role = role;
        }
    }

    /// Returns the id of the member whose state the links of member `id` see: its own while it is cut off,
    /// otherwise the leader's.
    pub(super) fn world(&self, id: MemberId) -> MemberId {
        match self.role(id) {
            Some(Role::CutOff(_)) => id,
            _ => LEADER,
        }
    }

    /// Returns the state and the pipe of a follower that is cut off, if it holds its clients' messages.
    pub(super) fn holding(&mut self, id: MemberId) -> Option<(&State, &mut Pipe)> {
        match self.role_mut(id) {
            Some(Role::CutOff(view)) => view.pipe.as_mut().map(|pipe| (&view.state, pipe)),
            _ => None,
        }
    }

    /// Returns the number of bytes of messages held by all followers.
    pub(super) fn held_bytes(&self) -> usize {
        let pipe = |member: &Member| match &member.role {
            Role::CutOff(view) => view.pipe.as_ref().map_or(0, Pipe::bytes),
            _ => 0,
        };
        self.members.values().map(pipe).sum()
    }

    pub(crate) fn held_count(&mut self, id: MemberId) -> usize {
        self.holding(id).map_or(0, |(_, pipe)| pipe.len())
    }

    /// Discards the messages held by followers, because the leader is lost.
    pub(super) fn lose_pipes(&mut self) {
        for member in self.members.values_mut() {
            if let Role::CutOff(view) = &mut member.role {
                view.pipe = view.pipe.take().map(|_| Pipe::default());
            }
        }
    }

    /// Returns the time at which a follower that is cut off stops serving.
    pub(super) fn gives_up_at(&self, id: MemberId) -> Option<i64> {
        match self.role(id)? {
            Role::CutOff(view) => Some(view.until_ms),
            _ => None,
        }
    }

    /// Returns whether a follower has lost the leader, noticed or not.
    pub(super) fn is_apart(&self, id: MemberId) -> bool {
        matches!(self.role(id), Some(Role::CutOff(_) | Role::Down))
    }
}
