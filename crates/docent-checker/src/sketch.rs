//! Small runs, written by hand, to check the checker with. Times are milliseconds.
//!
//! Clients have the numbers 0 to 3, and each has a session with the id 1 more than its number; the session
//! timeout is 6 s, the tick 500 ms, and news take 200 ms. Each event happens at the time of the last
//! [`at`](Sketch::at).

mod announcing;
mod attempts;
mod electing;
mod meeting;
mod nodes;
mod publishing;
mod queueing;
mod sessions;
mod verdict;

pub(crate) use electing::candidate;
pub(crate) use meeting::Guest;
pub(crate) use publishing::FOLLOWER;
use queueing::QUEUE;
pub(crate) use queueing::{Given, Stored};

use super::event::{AttemptId, ClientId, Event, FaultKind, What};
use super::journal::{Change, ChangeKind};
use super::run::{EndState, Facts, Run};
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
    /// Marker before the number of an attempt's node, unless it is that of a mutex.
    markers: BTreeMap<AttemptId, &'static str>,
    /// Client, path and nodes of each attempt.
    seats: BTreeMap<AttemptId, (ClientId, String, Vec<String>)>,
    /// The session and generation of each client.
    sessions: BTreeMap<ClientId, (i64, u64)>,
    /// Nodes that exist, with their creation and owner.
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
            markers: BTreeMap::new(),
            seats: BTreeMap::new(),
            sessions: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        sketch.run.facts.tolerances.news = Duration::from_millis(200);
        sketch.run.facts.queues.insert(QUEUE.to_owned(), 2);
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

    /// Sets the time of the events from now on.
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

    fn change(&mut self, session: i64, kind: ChangeKind, path: &str, owner: i64) {
        let (zxid, at) = (self.zxid, self.now);
        self.run.journal.push(Change { zxid, at, session, kind, path: path.to_owned(), owner });
    }

    /// Ends the run with a look at the server's state at this time.
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
}
