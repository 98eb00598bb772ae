//! Small runs, written by hand: what a checker is checked with. Times are milliseconds.
//!
//! Clients have the numbers 0 to 3, and each has a session with the id 1 more than its number; the session timeout is 6 s, the
//! tick 500 ms, and news take 200 ms. Whatever is told happens at the time of the last [`at`](Sketch::at).

use super::check::check;
use super::event::{
    Attempt, AttemptId, ClientId, Ending, Event, FaultKind, Grant, Handle, LinkState, Role, Use, What,
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
    /// Whose attempt, where, and by which nodes.
    seats: BTreeMap<AttemptId, (ClientId, String, Vec<String>)>,
    /// The session and epoch of each client.
    sessions: BTreeMap<ClientId, (i64, u64)>,
    /// Nodes that are there, with their creation and owner.
    nodes: BTreeMap<String, (i64, i64)>,
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

    fn begin_as(&mut self, number: u32, path: &str, patience: Option<Duration>) -> AttemptId {
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.seats.insert(id, (client(number), path.to_owned(), Vec::new()));
        self.tell(
            number,
            What::Began(Attempt { id, path: path.to_owned(), role: Role::Exclusive, patience }),
        );
        id
    }

    /// The node of an attempt, in its client's present session.
    pub(crate) fn create(&mut self, attempt: AttemptId) -> &mut Self {
        let (owner, folder) = (self.seats[&attempt].0, self.seats[&attempt].1.clone());
        let (session, _) = self.sessions[&owner];
        self.zxid += 1;
        let number = self.numbers.entry(folder.clone()).or_default();
        let path = format!("{folder}/_c_00000000-0000-4000-8000-{:012}-lock-{number:010}", self.zxid);
        *number += 1;
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

    pub(crate) fn grant(&mut self, attempt: AttemptId) -> &mut Self {
        let fence = self.czxid(&self.node(attempt)).unsigned_abs();
        self.grant_with(attempt, fence)
    }

    pub(crate) fn grant_with(&mut self, attempt: AttemptId, fence: u64) -> &mut Self {
        let (session, epoch) = self.sessions[&self.seats[&attempt].0];
        let grant = Grant { node: self.node(attempt), session, epoch, fence: Some(fence) };
        self.tell(self.seat(attempt), What::Granted(attempt, grant))
    }

    pub(crate) fn ended(&mut self, attempt: AttemptId, ending: Ending) -> &mut Self {
        self.tell(self.seat(attempt), What::Ended(attempt, ending))
    }

    pub(crate) fn looked(&mut self, attempt: AttemptId, held: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Looked { attempt, held, cancelled: !held })
    }

    pub(crate) fn used(&mut self, attempt: AttemptId) -> &mut Self {
        let fence = self.czxid(&self.node(attempt)).unsigned_abs();
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
