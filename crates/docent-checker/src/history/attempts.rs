use super::builder::{Begun, HistoryBuilder, LOCK, client};
use crate::event::{Attempt, AttemptId, Ending, EventKind, Grant, Handle, Role, Turn, Use};
use crate::journal::{Change, ChangeKind};
use std::time::Duration;

impl HistoryBuilder {
    /// Client 0 holds the lock from 110 ms on.
    pub(crate) fn of_holder() -> (Self, AttemptId) {
        let mut history = Self::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt);
        (history, attempt)
    }

    pub(crate) fn begin(&mut self, number: u32) -> AttemptId {
        self.begin_at(number, LOCK)
    }

    pub(crate) fn begin_at(&mut self, number: u32, path: &str) -> AttemptId {
        self.begin_as(number, path, None)
    }

    pub(crate) fn begin_for(&mut self, number: u32, patience: u64) -> AttemptId {
        self.begin_as(number, LOCK, Some(Duration::from_millis(patience)))
    }

    /// A client requests the exclusive side of a read/write lock.
    pub(crate) fn write(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin(number);
        self.markers.insert(attempt, "__WRIT__");
        attempt
    }

    /// A client requests the shared side of a read/write lock.
    pub(crate) fn read(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin_role(number, LOCK, None, Role::Shared);
        self.markers.insert(attempt, "__READ__");
        attempt
    }

    /// A client requests the shared side of a read/write lock, without waiting.
    pub(crate) fn try_read(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin_role(number, LOCK, Some(Duration::ZERO), Role::Shared);
        self.markers.insert(attempt, "__READ__");
        attempt
    }

    /// A client requests one of `permits` permits.
    pub(crate) fn permit(&mut self, number: u32, permits: u32) -> AttemptId {
        self.begin_role(number, LOCK, None, Role::Permits(permits))
    }

    fn begin_as(&mut self, number: u32, path: &str, patience: Option<Duration>) -> AttemptId {
        self.begin_role(number, path, patience, Role::Exclusive)
    }

    fn begin_role(&mut self, number: u32, path: &str, patience: Option<Duration>, role: Role) -> AttemptId {
        let id = self.next_id();
        self.begun.insert(id, Begun { number, path: path.to_owned(), nodes: Vec::new() });
        self.record(number, EventKind::Began(Attempt { id, path: path.to_owned(), role, patience }));
        id
    }

    /// Creates the node of an attempt, in its client's current session.
    pub(crate) fn create(&mut self, attempt: AttemptId) -> &mut Self {
        let number = self.numbers.entry(self.begun[&attempt].path.clone()).or_default();
        *number += 1;
        let number = *number - 1;
        self.create_with(attempt, number)
    }

    /// Creates the node of an attempt, with the number of another attempt's last node.
    pub(crate) fn create_in_place_of(&mut self, other: AttemptId, attempt: AttemptId) -> &mut Self {
        let place = self.node(other);
        let number = place.split_at(place.len() - 10).1.parse().unwrap();
        self.create_with(attempt, number)
    }

    fn create_with(&mut self, attempt: AttemptId, number: i32) -> &mut Self {
        let (session, folder) = (self.session_of(self.number_of(attempt)), self.begun[&attempt].path.clone());
        self.zxid += 1;
        let marker = self.markers.get(&attempt).copied().unwrap_or("lock-");
        let path = format!("{folder}/_c_00000000-0000-4000-8000-{:012}-{marker}{number:010}", self.zxid);
        self.change(session, ChangeKind::Created, &path, session);
        self.nodes.insert(path.clone(), (self.zxid, session));
        if let Some(begun) = self.begun.get_mut(&attempt) {
            begun.nodes.push(path);
        }
        self
    }

    /// The last node of an attempt.
    pub(crate) fn node(&self, attempt: AttemptId) -> String {
        self.begun[&attempt].nodes.last().cloned().unwrap_or_default()
    }

    fn czxid(&self, path: &str) -> i64 {
        let created = |change: &&Change| change.kind == ChangeKind::Created && change.path == path;
        self.run.journal.iter().rev().find(created).map_or(0, |change| change.zxid)
    }

    /// The client number of an attempt.
    pub(super) fn number_of(&self, attempt: AttemptId) -> u32 {
        self.begun[&attempt].number
    }

    /// The fence that belongs to an attempt's node.
    pub(crate) fn fence(&self, attempt: AttemptId) -> u64 {
        self.czxid(&self.node(attempt)).unsigned_abs()
    }

    /// Grants an attempt. The grant of a reader has no fence.
    pub(crate) fn grant(&mut self, attempt: AttemptId) -> &mut Self {
        if self.markers.get(&attempt) == Some(&"__READ__") {
            return self.grant_plain(attempt);
        }
        self.grant_with(attempt, self.fence(attempt))
    }

    pub(crate) fn grant_with(&mut self, attempt: AttemptId, fence: u64) -> &mut Self {
        self.grant_as(attempt, Some(fence))
    }

    /// Grants the first turn with a shared ticket.
    pub(crate) fn grant_turn(&mut self, attempt: AttemptId) -> &mut Self {
        let turn = Turn { number: 0, last: 9 };
        let fence = turn.fence(self.czxid(&self.node(attempt)).unsigned_abs());
        self.grant_of(attempt, Some(fence), Some(turn))
    }

    /// Grants an attempt without a fence.
    pub(crate) fn grant_plain(&mut self, attempt: AttemptId) -> &mut Self {
        self.grant_as(attempt, None)
    }

    fn grant_as(&mut self, attempt: AttemptId, fence: Option<u64>) -> &mut Self {
        self.grant_of(attempt, fence, None)
    }

    fn grant_of(&mut self, attempt: AttemptId, fence: Option<u64>, turn: Option<Turn>) -> &mut Self {
        let (session, generation) = self.sessions[&client(self.number_of(attempt))];
        let grant = Grant { node: self.node(attempt), session, generation, fence, turn };
        self.record(self.number_of(attempt), EventKind::Granted(attempt, grant))
    }

    pub(crate) fn ended(&mut self, attempt: AttemptId, ending: Ending) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Ended(attempt, ending))
    }

    pub(crate) fn held_checked(&mut self, attempt: AttemptId, held: bool) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::HeldChecked { attempt, held, cancelled: !held })
    }

    pub(crate) fn used(&mut self, attempt: AttemptId) -> &mut Self {
        let fence = self.fence(attempt);
        self.used_with(attempt, fence, true)
    }

    pub(crate) fn used_with(&mut self, attempt: AttemptId, fence: u64, accepted: bool) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Used(attempt, Use { fence, accepted }))
    }

    pub(crate) fn reentered(&mut self, attempt: AttemptId, handle: Handle) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Reentered(attempt, handle))
    }

    pub(crate) fn lost(&mut self, attempt: AttemptId) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Lost(attempt))
    }

    pub(crate) fn releasing(&mut self, attempt: AttemptId) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Releasing(attempt))
    }

    pub(crate) fn released(&mut self, attempt: AttemptId, ok: bool) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Released { attempt, ok })
    }

    pub(crate) fn dropped(&mut self, attempt: AttemptId) -> &mut Self {
        self.record(self.number_of(attempt), EventKind::Dropped(attempt))
    }

    /// The client of an attempt deletes its last node.
    pub(crate) fn delete(&mut self, attempt: AttemptId) -> &mut Self {
        let session = self.session_of(self.number_of(attempt));
        let path = self.node(attempt);
        self.delete_path(&path, session)
    }

    /// The line's node is deleted and re-created, which resets its sequence numbers to 0.
    pub(crate) fn reset(&mut self) -> &mut Self {
        self.numbers.clear();
        self
    }
}
