use crate::check::check;
use crate::event::{AttemptId, ClientId, Event, EventKind, FaultKind, LinkState};
use crate::journal::{Change, ChangeKind, EndCause};
use crate::run::{EndState, Facts, QueueRules, Run, Written};
use crate::violation::Invariant;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const LOCK: &str = "/lock";

/// A queue whose items are handed out at most twice.
pub(super) const QUEUE: &str = "/queue";

const CLIENTS: u32 = 4;

/// Builder of a small run, with times in milliseconds.
///
/// Clients have the numbers 0 to 3. The id of a client's session is its number plus 1. The session timeout is
/// 6 s, the tick 500 ms, and notifications take up to 200 ms. Each event happens at the time of the last call
/// of [`at`](HistoryBuilder::at).
#[derive(Debug, Clone)]
pub(crate) struct HistoryBuilder {
    pub(crate) run: Run,
    now: Duration,
    pub(super) zxid: i64,
    pub(super) numbers: BTreeMap<String, i32>,
    pub(super) attempts: u64,
    /// Marker before the number in the name of an attempt's node; that of a mutex if absent.
    pub(super) markers: BTreeMap<AttemptId, &'static str>,
    /// The attempts that began.
    pub(super) begun: BTreeMap<AttemptId, Begun>,
    /// The current session and generation of each client.
    pub(super) sessions: BTreeMap<ClientId, (i64, u64)>,
    /// Existing nodes, each with its creation and owner.
    pub(super) nodes: BTreeMap<String, (i64, i64)>,
}

/// An attempt that began.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    pub(super) number: u32,
    pub(super) path: String,
    pub(super) nodes: Vec<String>,
}

pub(crate) fn client(number: u32) -> ClientId {
    ClientId { number, life: 0 }
}

impl HistoryBuilder {
    /// Four connected clients.
    pub(crate) fn new() -> Self {
        let mut history = Self {
            run: Run {
                facts: Facts::new(Duration::from_millis(500), Duration::from_secs(6)),
                ..Run::default()
            },
            now: Duration::from_millis(10),
            zxid: 0,
            numbers: BTreeMap::new(),
            attempts: 0,
            markers: BTreeMap::new(),
            begun: BTreeMap::new(),
            sessions: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        history.run.facts.tolerances.notification = Duration::from_millis(200);
        let rules = QueueRules { max_deliveries: 2, undecodable_after: Duration::ZERO, ordered: false };
        history.run.facts.queues.insert(QUEUE.to_owned(), rules);
        for number in 0..CLIENTS {
            history.connect(number, i64::from(number) + 1, 1);
        }
        history
    }

    /// One lock that is handed over from client 0 to client 1. All clients close at the end.
    pub(crate) fn good() -> Self {
        let mut history = Self::new();
        let first = history.at(100).begin(0);
        history.at(102).create(first).at(104).grant(first).held_checked(first, true).used(first);
        let second = history.at(110).begin(1);
        history.at(112).create(second);
        history.at(200).releasing(first).at(202).delete(first).at(204).released(first, true);
        let deleted = history.node(first);
        history.at(204).record(1, EventKind::Notified { path: deleted });
        history.at(205).grant(second).used(second).held_checked(second, true);
        history.at(300).dropped(second).at(302).delete(second);
        for number in 0..CLIENTS {
            history.at(400).close(number);
        }
        history.end(1_000)
    }

    /// Sets the time of the events that follow.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Duration::from_millis(ms);
        self
    }

    pub(crate) fn record(&mut self, number: u32, kind: EventKind) -> &mut Self {
        self.run.events.push(Event { at: self.now, client: Some(client(number)), kind });
        self
    }

    pub(crate) fn world(&mut self, kind: EventKind) -> &mut Self {
        self.run.events.push(Event { at: self.now, client: None, kind });
        self
    }

    pub(crate) fn fault(&mut self, number: u32, kind: FaultKind) -> &mut Self {
        self.record(number, EventKind::Fault(kind))
    }

    pub(crate) fn heal(&mut self, number: u32, kind: FaultKind) -> &mut Self {
        self.record(number, EventKind::Healed(kind))
    }

    /// The number of a new attempt, or of anything that is numbered like an attempt.
    pub(super) fn next_id(&mut self) -> AttemptId {
        self.attempts += 1;
        AttemptId(self.attempts)
    }

    /// The current session of a client.
    pub(super) fn session_of(&self, number: u32) -> i64 {
        self.sessions[&client(number)].0
    }

    /// The server opens a session for a client, and the client reports that it is connected.
    pub(crate) fn connect(&mut self, number: u32, session: i64, generation: u64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Opened, "", 0);
        self.sessions.insert(client(number), (session, generation));
        self.link(number, LinkState::Connected)
    }

    /// A client reports another state of the link of its current session.
    pub(crate) fn link(&mut self, number: u32, state: LinkState) -> &mut Self {
        let (session, generation) = self.sessions[&client(number)];
        self.record(
            number,
            EventKind::Connection { state, generation, suspensions: 0, session: Some(session) },
        )
    }

    /// The server ends a session and deletes its nodes.
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

    /// A client closes properly.
    pub(crate) fn close(&mut self, number: u32) -> &mut Self {
        let session = self.session_of(number);
        self.record(number, EventKind::Closing).end_session(session, EndCause::Closed);
        self.link(number, LinkState::Closed).record(number, EventKind::Closed)
    }

    pub(super) fn change(&mut self, session: i64, kind: ChangeKind, path: &str, owner: i64) {
        let (zxid, at) = (self.zxid, self.now);
        self.run.journal.push(Change { zxid, at, session, kind, path: path.to_owned(), owner });
    }

    /// A session creates a node that belongs to `owner`.
    pub(crate) fn create_node(&mut self, path: &str, session: i64, owner: i64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Created, path, owner);
        self.nodes.insert(path.to_owned(), (self.zxid, owner));
        self
    }

    /// A session deletes a node.
    pub(crate) fn delete_path(&mut self, path: &str, session: i64) -> &mut Self {
        self.zxid += 1;
        let owner = self.nodes.remove(path).map_or(0, |(_, owner)| owner);
        self.change(session, ChangeKind::Deleted, path, owner);
        self
    }

    /// A transaction that changes no relevant node.
    pub(crate) fn pass(&mut self) -> &mut Self {
        self.zxid += 1;
        self.change(0, ChangeKind::Set, "/limit", 0);
        self
    }

    /// Creates a node with data. The node is ephemeral, unless its session is 0.
    pub(crate) fn write_node(&mut self, path: &str, session: i64, number: Option<u64>) -> &mut Self {
        self.create_node(path, session, session).note(path, number)
    }

    /// Sets the data of a node.
    pub(crate) fn write_again(&mut self, path: &str, session: i64, number: Option<u64>) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Set, path, session);
        self.note(path, number)
    }

    fn note(&mut self, path: &str, number: Option<u64>) -> &mut Self {
        self.run.facts.written.push(Written { path: path.to_owned(), zxid: self.zxid, number });
        self
    }

    pub(super) fn written(&self, path: &str, number: u64) -> Option<i64> {
        let mut written = self.run.facts.written.iter();
        written.find(|write| write.path == path && write.number == Some(number)).map(|write| write.zxid)
    }

    pub(crate) fn last_zxid(&self) -> i64 {
        self.zxid
    }

    /// Ends the run at this time, with the server's state at that moment.
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

    /// The violated invariants, without repetition.
    pub(crate) fn broken(&self) -> Vec<Invariant> {
        let mut broken: Vec<Invariant> = check(&self.run).iter().map(|found| found.invariant).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// The texts of one invariant's violations.
    pub(crate) fn sentences(&self, invariant: Invariant) -> Vec<String> {
        let found = check(&self.run);
        found.iter().filter(|found| found.invariant == invariant).map(|found| found.what.clone()).collect()
    }

    /// Asserts that exactly this invariant is violated.
    #[track_caller]
    pub(crate) fn breaks(&self, invariant: Invariant) {
        assert_eq!(self.broken(), [invariant], "{:#?}", check(&self.run));
    }

    /// Asserts that this invariant is violated, perhaps with others.
    #[track_caller]
    pub(crate) fn breaks_also(&self, invariant: Invariant) {
        assert!(self.broken().contains(&invariant), "{:#?}", check(&self.run));
    }

    /// Asserts that no invariant is violated.
    #[track_caller]
    pub(crate) fn holds(&self) {
        assert_eq!(check(&self.run), []);
    }
}
