//! Candidates that run in tasks of their own and write down what happens to them.

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
    /// Its work began.
    Gained(Fence),
    /// Its work ended or was dropped.
    Gone(Fence),
}

/// Events of some candidates, in order.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<watch::Sender<Vec<(usize, Event, Instant)>>>);

impl Log {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    fn add(&self, who: usize, event: Event) {
        self.0.send_modify(|events| events.push((who, event, Instant::now())));
    }

    pub(crate) fn all(&self) -> Vec<(usize, Event, Instant)> {
        self.0.borrow().clone()
    }

    pub(crate) fn of(&self, who: usize) -> Vec<Event> {
        self.all().into_iter().filter(|(one, ..)| *one == who).map(|(_, event, _)| event).collect()
    }

    /// Candidate that began each term, with its fence and the time.
    pub(crate) fn terms(&self) -> Vec<(usize, Fence, Instant)> {
        let gained = |(who, event, at)| match event {
            Event::Gained(fence) => Some((who, fence, at)),
            Event::Gone(_) => None,
        };
        self.all().into_iter().filter_map(gained).collect()
    }

    /// Waits until so many terms have begun; returns the last of them.
    pub(crate) async fn term(&self, count: usize) -> (usize, Fence, Instant) {
        let mut events = self.0.subscribe();
        let begun = |events: &Vec<(usize, Event, Instant)>| {
            events.iter().filter(|(_, event, _)| matches!(event, Event::Gained(_))).count() >= count
        };
        soon(events.wait_for(begun)).await.unwrap();
        self.terms()[count - 1]
    }

    /// Writes down that a term began, and once the returned value is dropped, that it is gone.
    pub(crate) fn term_of(&self, who: usize, leadership: &Leadership) -> Noted {
        self.add(who, Event::Gained(leadership.fence()));
        Noted { log: self.clone(), who, fence: leadership.fence() }
    }
}

pub(crate) struct Noted {
    log: Log,
    who: usize,
    fence: Fence,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.log.add(self.who, Event::Gone(self.fence));
    }
}

/// A candidate whose work goes on for as long as it leads.
///
/// # On drop
/// It is stopped, but not waited for.
pub(crate) struct Candidate {
    run: JoinHandle<Result<(), Error>>,
    _stop: DropGuard,
    stop: CancellationToken,
}

impl Candidate {
    pub(crate) fn start(election: &Election, who: usize, log: &Log) -> Self {
        Self::with(election, who, log, |_| pending())
    }

    /// Candidate that does this work.
    pub(crate) fn with<W, F>(election: &Election, who: usize, log: &Log, mut work: W) -> Self
    where
        W: FnMut(Arc<Leadership>) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (stop, log) = (CancellationToken::new(), log.clone());
        let run = election
            .run(move |leadership| {
                let noted = log.term_of(who, &leadership);
                let work = work(Arc::new(leadership));
                async move {
                    let _noted = noted;
                    work.await
                }
            })
            .until(stop.clone().cancelled_owned());
        Self { run: tokio::spawn(run), _stop: stop.clone().drop_guard(), stop }
    }

    /// Waits until it has stopped.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        self.stop.cancel();
        soon(self.run).await.unwrap()
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ends(self) -> Result<(), Error> {
        soon(self.run).await.unwrap()
    }
}

pub(crate) fn election(client: &Client) -> Election {
    Election::builder(client, ELECTION).term_interval(Duration::ZERO).build().unwrap()
}

/// Waits until so many stand.
pub(crate) async fn until_standing(election: &Election, count: usize) {
    let start = Instant::now();
    loop {
        let candidates = soon(election.candidates()).await.unwrap();
        if candidates.len() == count {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{count} were to stand, there are {candidates:?}");
        docent_tests::pause().await;
    }
}
