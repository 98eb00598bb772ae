//! Candidates that run in separate tasks and record what happens to them.

use docent::{Client, Election, Error, Fence, Leadership};
use docent_tests::{PATIENCE, soon};
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const ELECTION: &str = "/election";

/// Event of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its work started.
    Gained(Fence),
    /// Its work ended or was dropped.
    Ended(Fence),
}

/// Events of several candidates, in order.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<watch::Sender<Vec<(usize, Event, Instant)>>>);

impl Log {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    fn add(&self, number: usize, event: Event) {
        self.0.send_modify(|events| events.push((number, event, Instant::now())));
    }

    pub(crate) fn all(&self) -> Vec<(usize, Event, Instant)> {
        self.0.borrow().clone()
    }

    pub(crate) fn of(&self, number: usize) -> Vec<Event> {
        self.all().into_iter().filter(|(one, ..)| *one == number).map(|(_, event, _)| event).collect()
    }

    /// Returns the candidate of each term, with its fence and start time.
    pub(crate) fn terms(&self) -> Vec<(usize, Fence, Instant)> {
        let gained = |(number, event, at)| match event {
            Event::Gained(fence) => Some((number, fence, at)),
            Event::Ended(_) => None,
        };
        self.all().into_iter().filter_map(gained).collect()
    }

    /// Waits until `count` terms have started. Returns the last of them.
    pub(crate) async fn term(&self, count: usize) -> (usize, Fence, Instant) {
        let mut events = self.0.subscribe();
        let begun = |events: &Vec<(usize, Event, Instant)>| {
            events.iter().filter(|(_, event, _)| matches!(event, Event::Gained(_))).count() >= count
        };
        soon(events.wait_for(begun)).await.unwrap();
        self.terms()[count - 1]
    }

    /// Records the start of a term, and, when the returned value is dropped, its end.
    pub(crate) fn term_of(&self, number: usize, leadership: &Leadership) -> TermRecord {
        self.add(number, Event::Gained(leadership.fence()));
        TermRecord { log: self.clone(), number, fence: leadership.fence() }
    }
}

pub(crate) struct TermRecord {
    log: Log,
    number: usize,
    fence: Fence,
}

impl Drop for TermRecord {
    fn drop(&mut self) {
        self.log.add(self.number, Event::Ended(self.fence));
    }
}

/// A candidate whose work runs for as long as it leads.
///
/// # On drop
///
/// The candidate is stopped without waiting for it.
pub(crate) struct Candidate {
    run: JoinHandle<Result<(), Error>>,
    _stop: DropGuard,
    stop: CancellationToken,
}

impl Candidate {
    pub(crate) fn start(election: &Election, number: usize, log: &Log) -> Self {
        Self::with(election, number, log, |_| pending())
    }

    /// Starts a candidate with this work.
    pub(crate) fn with<W, F>(election: &Election, number: usize, log: &Log, mut work: W) -> Self
    where
        W: FnMut(Arc<Leadership>) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (stop, log) = (CancellationToken::new(), log.clone());
        let run = election
            .run(move |leadership| {
                let noted = log.term_of(number, &leadership);
                let work = work(Arc::new(leadership));
                async move {
                    let _noted = noted;
                    work.await
                }
            })
            .until(stop.clone().cancelled_owned());
        Self { run: tokio::spawn(run), _stop: stop.clone().drop_guard(), stop }
    }

    /// Stops the candidate and waits until it has stopped.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        self.stop.cancel();
        soon(self.run).await.unwrap()
    }

    /// Waits until the candidate ends on its own.
    pub(crate) async fn ends(self) -> Result<(), Error> {
        soon(self.run).await.unwrap()
    }
}

pub(crate) fn election(client: &Client) -> Election {
    Election::builder(client, ELECTION).term_interval(Duration::ZERO).build().unwrap()
}

/// Waits until there are `count` candidates.
pub(crate) async fn until_candidates(election: &Election, count: usize) {
    let start = Instant::now();
    loop {
        let candidates = soon(election.candidates()).await.unwrap();
        if candidates.len() == count {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "expected {count} candidates, found {candidates:?}");
        docent_tests::pause().await;
    }
}
