//! Small runs, written by hand: what a checker is checked with. Times are milliseconds.
//!
//! Clients have the numbers 0 to 3, and each has a session with the id 1 more than its number; the session timeout is 6 s, the
//! tick 500 ms, and news take 200 ms. Whatever is told happens at the time of the last [`at`](Sketch::at).

use super::check::check;
use super::event::{
    Attempt, AttemptId, ClientId, Ending, Event, FaultKind, Grant, Handle, LinkState, Meeting, Role, Use,
    What,
};
use super::journal::{Change, ChangeKind, EndCause};
use super::run::{EndState, Facts, Run};
use super::violation::Invariant;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const LOCK: &str = "/lock";
const CLIENTS: u32 = 4;

#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    pub(crate) run: Run,
    now: Duration,
    zxid: i64,
    numbers: BTreeMap<String, i32>,
    attempts: u64,
    /// What stands before the number of an attempt's node, unless it is that of a mutex.
    markers: BTreeMap<AttemptId, &'static str>,
    /// Whose attempt, where, and by which nodes.
    seats: BTreeMap<AttemptId, (ClientId, String, Vec<String>)>,
    /// The session and epoch of each client.
    sessions: BTreeMap<ClientId, (i64, u64)>,
    /// Nodes that are there, with their creation and owner.
    nodes: BTreeMap<String, (i64, i64)>,
}

/// A member of a double barrier.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    id: AttemptId,
    number: u32,
    node: String,
}

pub(crate) fn client(number: u32) -> ClientId {
    ClientId { number, life: 0 }
}

impl Sketch {
    /// Four clients that are connected.
    pub(crate) fn new() -> Self {
        let mut sketch = Self {
            run: Run {
                facts: Facts::new(Duration::from_millis(500), Duration::from_secs(6)),
                ..Run::default()
            },
            now: Duration::from_millis(10),
            zxid: 0,
            numbers: BTreeMap::new(),
            attempts: 0,
            markers: BTreeMap::new(),
            seats: BTreeMap::new(),
            sessions: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        sketch.run.facts.tolerances.news = Duration::from_millis(200);
        for number in 0..CLIENTS {
            sketch.connect(number, i64::from(number) + 1, 1);
        }
        sketch
    }

    /// One lock that is handed from client 0 to client 1; all is closed at the end.
    pub(crate) fn good() -> Self {
        let mut sketch = Self::new();
        let first = sketch.at(100).begin(0);
        sketch.at(102).create(first).at(104).grant(first).looked(first, true).used(first);
        let second = sketch.at(110).begin(1);
        sketch.at(112).create(second);
        sketch.at(200).releasing(first).at(202).delete(first).at(204).released(first, true);
        let gone = sketch.node(first);
        sketch.at(204).tell(1, What::Notified { path: gone });
        sketch.at(205).grant(second).used(second).looked(second, true);
        sketch.at(300).dropped(second).at(302).delete(second);
        for number in 0..CLIENTS {
            sketch.at(400).close(number);
        }
        sketch.end(1_000)
    }

    /// What happens from now on happens at this time.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Duration::from_millis(ms);
        self
    }

    pub(crate) fn tell(&mut self, number: u32, what: What) -> &mut Self {
        self.run.events.push(Event { at: self.now, client: Some(client(number)), what });
        self
    }

    pub(crate) fn world(&mut self, what: What) -> &mut Self {
        self.run.events.push(Event { at: self.now, client: None, what });
        self
    }

    pub(crate) fn fault(&mut self, number: u32, kind: FaultKind) -> &mut Self {
        self.tell(number, What::Fault(kind))
    }

    pub(crate) fn heal(&mut self, number: u32, kind: FaultKind) -> &mut Self {
        self.tell(number, What::Healed(kind))
    }

    /// The server opens a session for a client, which tells that it is connected.
    pub(crate) fn connect(&mut self, number: u32, session: i64, epoch: u64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Opened, "", 0);
        self.sessions.insert(client(number), (session, epoch));
        self.link(number, LinkState::Connected)
    }

    /// A client tells another state of the link of its present session.
    pub(crate) fn link(&mut self, number: u32, state: LinkState) -> &mut Self {
        let (session, epoch) = self.sessions[&client(number)];
        self.tell(number, What::Connection { state, epoch, suspensions: 0, session: Some(session) })
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

    /// Somebody wants to write.
    pub(crate) fn write(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin(number);
        self.markers.insert(attempt, "__WRIT__");
        attempt
    }

    /// Somebody wants to read.
    pub(crate) fn read(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin_role(number, LOCK, None, Role::Shared);
        self.markers.insert(attempt, "__READ__");
        attempt
    }

    /// Somebody wants to read at once.
    pub(crate) fn try_read(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin_role(number, LOCK, Some(Duration::ZERO), Role::Shared);
        self.markers.insert(attempt, "__READ__");
        attempt
    }

    /// Somebody wants one of so many permits.
    pub(crate) fn permit(&mut self, number: u32, permits: u32) -> AttemptId {
        self.begin_role(number, LOCK, None, Role::Permits(permits))
    }

    fn begin_as(&mut self, number: u32, path: &str, patience: Option<Duration>) -> AttemptId {
        self.begin_role(number, path, patience, Role::Exclusive)
    }

    fn begin_role(&mut self, number: u32, path: &str, patience: Option<Duration>, role: Role) -> AttemptId {
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.seats.insert(id, (client(number), path.to_owned(), Vec::new()));
        self.tell(number, What::Began(Attempt { id, path: path.to_owned(), role, patience }));
        id
    }

    /// The node of an attempt, in its client's present session.
    pub(crate) fn create(&mut self, attempt: AttemptId) -> &mut Self {
        let number = self.numbers.entry(self.seats[&attempt].1.clone()).or_default();
        *number += 1;
        let number = *number - 1;
        self.create_with(attempt, number)
    }

    /// The node of an attempt, with the number that another one's last node has.
    pub(crate) fn create_in_place_of(&mut self, other: AttemptId, attempt: AttemptId) -> &mut Self {
        let place = self.node(other);
        let number = place.split_at(place.len() - 10).1.parse().unwrap();
        self.create_with(attempt, number)
    }

    fn create_with(&mut self, attempt: AttemptId, number: i32) -> &mut Self {
        let (owner, folder) = (self.seats[&attempt].0, self.seats[&attempt].1.clone());
        let (session, _) = self.sessions[&owner];
        self.zxid += 1;
        let marker = self.markers.get(&attempt).copied().unwrap_or("lock-");
        let path = format!("{folder}/_c_00000000-0000-4000-8000-{:012}-{marker}{number:010}", self.zxid);
        self.change(session, ChangeKind::Created, &path, session);
        self.nodes.insert(path.clone(), (self.zxid, session));
        if let Some((.., nodes)) = self.seats.get_mut(&attempt) {
            nodes.push(path);
        }
        self
    }

    /// The last node of an attempt.
    pub(crate) fn node(&self, attempt: AttemptId) -> String {
        self.seats[&attempt].2.last().cloned().unwrap_or_default()
    }

    fn czxid(&self, path: &str) -> i64 {
        let created = |change: &&Change| change.kind == ChangeKind::Created && change.path == path;
        self.run.journal.iter().rev().find(created).map_or(0, |change| change.zxid)
    }

    fn seat(&self, attempt: AttemptId) -> u32 {
        self.seats[&attempt].0.number
    }

    /// The fence that goes with the node of an attempt.
    pub(crate) fn fence(&self, attempt: AttemptId) -> u64 {
        self.czxid(&self.node(attempt)).unsigned_abs()
    }

    /// Readers have no fence.
    pub(crate) fn grant(&mut self, attempt: AttemptId) -> &mut Self {
        if self.markers.get(&attempt) == Some(&"__READ__") {
            return self.grant_plain(attempt);
        }
        self.grant_with(attempt, self.fence(attempt))
    }

    pub(crate) fn grant_with(&mut self, attempt: AttemptId, fence: u64) -> &mut Self {
        self.grant_as(attempt, Some(fence))
    }

    /// Without a fence.
    pub(crate) fn grant_plain(&mut self, attempt: AttemptId) -> &mut Self {
        self.grant_as(attempt, None)
    }

    fn grant_as(&mut self, attempt: AttemptId, fence: Option<u64>) -> &mut Self {
        let (session, epoch) = self.sessions[&self.seats[&attempt].0];
        let grant = Grant { node: self.node(attempt), session, epoch, fence };
        self.tell(self.seat(attempt), What::Granted(attempt, grant))
    }

    pub(crate) fn ended(&mut self, attempt: AttemptId, ending: Ending) -> &mut Self {
        self.tell(self.seat(attempt), What::Ended(attempt, ending))
    }

    pub(crate) fn looked(&mut self, attempt: AttemptId, held: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Looked { attempt, held, cancelled: !held })
    }

    pub(crate) fn used(&mut self, attempt: AttemptId) -> &mut Self {
        let fence = self.fence(attempt);
        self.used_with(attempt, fence, true)
    }

    pub(crate) fn used_with(&mut self, attempt: AttemptId, fence: u64, accepted: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Used(attempt, Use { fence, accepted }))
    }

    pub(crate) fn reentered(&mut self, attempt: AttemptId, handle: Handle) -> &mut Self {
        self.tell(self.seat(attempt), What::Reentered(attempt, handle))
    }

    pub(crate) fn lost(&mut self, attempt: AttemptId) -> &mut Self {
        self.tell(self.seat(attempt), What::Lost(attempt))
    }

    pub(crate) fn releasing(&mut self, attempt: AttemptId) -> &mut Self {
        self.tell(self.seat(attempt), What::Releasing(attempt))
    }

    pub(crate) fn released(&mut self, attempt: AttemptId, ok: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Released { attempt, ok })
    }

    pub(crate) fn dropped(&mut self, attempt: AttemptId) -> &mut Self {
        self.tell(self.seat(attempt), What::Dropped(attempt))
    }

    /// The client of an attempt deletes its last node.
    pub(crate) fn delete(&mut self, attempt: AttemptId) -> &mut Self {
        let (session, _) = self.sessions[&self.seats[&attempt].0];
        let path = self.node(attempt);
        self.delete_path(&path, session)
    }

    /// A session deletes a node.
    pub(crate) fn delete_path(&mut self, path: &str, session: i64) -> &mut Self {
        self.zxid += 1;
        let owner = self.nodes.remove(path).map_or(0, |(_, owner)| owner);
        self.change(session, ChangeKind::Deleted, path, owner);
        self
    }

    /// The server ends a session, and its nodes with it.
    pub(crate) fn end_session(&mut self, session: i64, cause: EndCause) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Ended(cause), "", 0);
        let owned = |(_, (_, owner)): &(&String, &(i64, i64))| *owner == session;
        let paths: Vec<String> = self.nodes.iter().filter(owned).map(|(path, _)| path.clone()).collect();
        for path in paths {
            self.nodes.remove(&path);
            self.change(session, ChangeKind::Deleted, &path, session);
        }
        self
    }

    /// A client closes, as it should.
    pub(crate) fn close(&mut self, number: u32) -> &mut Self {
        let (session, _) = self.sessions[&client(number)];
        self.tell(number, What::Closing).end_session(session, EndCause::Closed);
        self.link(number, LinkState::Closed).tell(number, What::Closed)
    }

    /// The line's node is deleted and made anew: numbers begin at 0 again.
    pub(crate) fn reset(&mut self) -> &mut Self {
        self.numbers.clear();
        self
    }

    /// A session makes a node, which belongs to `owner`.
    pub(crate) fn make(&mut self, path: &str, session: i64, owner: i64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Created, path, owner);
        self.nodes.insert(path.to_owned(), (self.zxid, owner));
        self
    }

    /// A transaction that changes no node.
    pub(crate) fn pass(&mut self) -> &mut Self {
        self.zxid += 1;
        self.change(0, ChangeKind::Set, "/limit", 0);
        self
    }

    /// A member of the double barrier at [`LOCK`] comes, and its node.
    pub(crate) fn come(&mut self, number: u32, members: u32) -> Guest {
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.tell(number, What::Met(id, Meeting::Came { path: LOCK.to_owned(), members }));
        let (session, _) = self.sessions[&client(number)];
        let node = format!("{LOCK}/00000000-0000-4000-8000-{:012}", self.zxid + 1);
        self.make(&node, session, session);
        Guest { id, number, node }
    }

    /// The door of that barrier is opened.
    pub(crate) fn open(&mut self, number: u32) -> &mut Self {
        let (session, _) = self.sessions[&client(number)];
        self.make(&format!("{LOCK}/ready"), session, 0)
    }

    pub(crate) fn enter(&mut self, guest: &Guest) -> &mut Self {
        self.tell(guest.number, What::Met(guest.id, Meeting::Entered(guest.node.clone())))
    }

    pub(crate) fn leaving(&mut self, guest: &Guest) -> &mut Self {
        self.tell(guest.number, What::Met(guest.id, Meeting::Leaving))
    }

    pub(crate) fn left(&mut self, guest: &Guest) -> &mut Self {
        self.tell(guest.number, What::Met(guest.id, Meeting::Left { ok: true }))
    }

    /// The node of a member is deleted by its client.
    pub(crate) fn gone(&mut self, guest: &Guest) -> &mut Self {
        let (session, _) = self.sessions[&client(guest.number)];
        self.delete_path(&guest.node, session)
    }

    fn change(&mut self, session: i64, kind: ChangeKind, path: &str, owner: i64) {
        let (zxid, at) = (self.zxid, self.now);
        self.run.journal.push(Change { zxid, at, session, kind, path: path.to_owned(), owner });
    }

    /// Somebody looks at what the server has at this time, and the run is over.
    pub(crate) fn end(&mut self, ms: u64) -> Self {
        let mut end = EndState::new(Duration::from_millis(ms));
        end.nodes = self.nodes.keys().cloned().collect();
        let mut open = BTreeMap::new();
        for change in &self.run.journal {
            match change.kind {
                ChangeKind::Opened => open.insert(change.session, 0),
                ChangeKind::Ended(_) => open.remove(&change.session),
                _ => None,
            };
        }
        end.sessions = open;
        self.run.facts.end = end;
        self.clone()
    }

    pub(crate) fn run(&self) -> Run {
        self.run.clone()
    }

    /// The invariants that the run breaks, each once.
    pub(crate) fn broken(&self) -> Vec<Invariant> {
        let mut broken: Vec<Invariant> = check(&self.run).iter().map(|found| found.invariant).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// The sentences of one invariant's violations.
    pub(crate) fn sentences(&self, invariant: Invariant) -> Vec<String> {
        let found = check(&self.run);
        found.iter().filter(|found| found.invariant == invariant).map(|found| found.what.clone()).collect()
    }

    /// Asserts that exactly one invariant is broken.
    #[track_caller]
    pub(crate) fn breaks(&self, invariant: Invariant) {
        assert_eq!(self.broken(), [invariant], "{:#?}", check(&self.run));
    }

    /// Asserts that this invariant is broken, perhaps with others.
    #[track_caller]
    pub(crate) fn breaks_also(&self, invariant: Invariant) {
        assert!(self.broken().contains(&invariant), "{:#?}", check(&self.run));
    }

    /// Asserts that nothing is broken.
    #[track_caller]
    pub(crate) fn holds(&self) {
        assert_eq!(check(&self.run), []);
    }
}
