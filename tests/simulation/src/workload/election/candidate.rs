use super::term::Term;
use super::workload::{ElectionWorkload, failed, number};
use crate::workload::ClientCtx;
use crate::workload::record::Record;
use docent::{Error, ErrorKind, Leadership};
use docent_checker::{AttemptId, Candidacy, Ending, EventKind, Role};
use fastrand::Rng;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::watch;

/// Why a candidate does not run any more.
#[derive(Debug)]
pub(super) enum Ended {
    /// Its work failed.
    Work,
    /// The election did.
    Election(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Election(error)
    }
}

/// Candidate that runs for term after term, and writes down its events: each time it stands is an attempt.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) workload: &'a ElectionWorkload,
    pub(super) ctx: &'a ClientCtx,
    pub(super) path: &'a str,
    id: AttemptId,
    pub(super) grace: Duration,
    delay: Duration,
    /// The attempt by which it stands now.
    standing: RefCell<Option<Record>>,
    pub(super) stopping: Cell<bool>,
    /// How many terms it led.
    pub(super) led: watch::Sender<u32>,
}

impl<'a> Candidate<'a> {
    /// It stands at once.
    pub(super) fn new(
        workload: &'a ElectionWorkload,
        ctx: &'a ClientCtx,
        path: &'a str,
        grace: Duration,
        delay: Duration,
    ) -> Self {
        let candidate = Self {
            workload,
            ctx,
            path,
            id: number(ctx),
            grace,
            delay,
            standing: RefCell::default(),
            stopping: Cell::new(false),
            led: watch::Sender::new(0),
        };
        candidate.stand();
        candidate
    }

    pub(super) fn stand(&self) {
        let record = Record::begin(self.ctx, self.path, Role::Exclusive, None);
        let (attempt, bound, delay) = (record.id(), Some(self.grace), self.delay);
        record.write(EventKind::Stood(self.id, Candidacy::Stands { attempt, bound, delay }));
        self.standing.replace(Some(record));
    }

    /// It is about to be stopped.
    pub(super) fn stops(&self) {
        if !self.stopping.replace(true) && !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Stood(self.id, Candidacy::Stopping));
        }
    }

    /// Until it has led so many terms, or one in which nothing new may be begun.
    pub(super) async fn has_led(&self, terms: u32) {
        let mut led = self.led.subscribe();
        let last = async {
            self.ctx.stop.cancelled().await;
            let before = *led.borrow();
            // The sender lives as long as this.
            let _ = led.wait_for(|led| *led > before).await;
        };
        let mut count = self.led.subscribe();
        tokio::select! {
            biased;
            _ = count.wait_for(|led| *led >= terms) => {}
            () = last => {}
        }
    }

    /// It does not run any more. Breaks when the client is closed.
    pub(super) fn over(&self, done: Result<(), Ended>) -> ControlFlow<()> {
        match (self.standing.take(), done) {
            (Some(record), Err(Ended::Election(error))) => failed(&record, &error),
            (Some(record), _) => {
                record.ended(Ending::Cancelled);
                ControlFlow::Continue(())
            }
            (None, Err(Ended::Election(error))) if error.kind() == ErrorKind::Closed => {
                ControlFlow::Break(())
            }
            (None, _) => ControlFlow::Continue(()),
        }
    }

    /// Begins a term; returns its work.
    pub(super) fn lead(
        &self,
        leadership: Leadership,
        mut rng: Rng,
    ) -> impl Future<Output = Result<(), Ended>> {
        // A term that follows while another one goes on is an attempt of its own, and wrong.
        if self.standing.borrow().is_none() {
            self.stand();
        }
        let record = self.standing.take();
        if let Some(record) = &record {
            record.granted(leadership.path(), Some(leadership.fence().as_u64()));
        }
        let mut term = Term::begin(self, record, leadership);
        async move { term.work(&mut rng).await }
    }
}
