use super::term::Term;
use super::workload::{ElectionWorkload, failed, number};
use crate::workload::ClientCtx;
use crate::workload::record::Record;
use docent::{Error, ErrorKind, Leadership};
use docent_checker::{AttemptId, Candidacy, Ending, EventKind, Role};
use fastrand::Rng;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::watch;

/// Why a candidate stopped.
#[derive(Debug)]
pub(super) enum Ended {
    /// Its work failed.
    Work,
    /// The election failed.
    Election(Error),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Election(error)
    }
}

/// A candidate that runs for term after term, and records its events. Each of its campaigns is an attempt.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) workload: &'a ElectionWorkload,
    pub(super) ctx: &'a ClientCtx,
    pub(super) path: &'a str,
    id: AttemptId,
    pub(super) grace: Duration,
    delay: Duration,
    /// The current attempt.
    current: RefCell<Option<Record>>,
    pub(super) stopping: Cell<bool>,
    /// Number of terms that the candidate has led.
    pub(super) led: watch::Sender<u32>,
}

impl<'a> Candidate<'a> {
    /// Creates a candidate, and begins its first campaign.
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
            current: RefCell::default(),
            stopping: Cell::new(false),
            led: watch::Sender::new(0),
        };
        candidate.campaign();
        candidate
    }

    pub(super) fn campaign(&self) {
        let record = Record::begin(self.ctx, self.path, Role::Exclusive, None);
        let (attempt, bound, delay) = (record.id(), Some(self.grace), self.delay);
        record.write(EventKind::Campaigned(self.id, Candidacy::Joins { attempt, bound, delay }));
        self.current.replace(Some(record));
    }

    /// Records that the candidate is about to be stopped.
    pub(super) fn stops(&self) {
        if !self.stopping.replace(true) && !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Campaigned(self.id, Candidacy::Stopping));
        }
    }

    /// Waits until the candidate has led `terms` terms, or one more term after nothing new may begin.
    pub(super) async fn has_led(&self, terms: u32) {
        let mut led = self.led.subscribe();
        let last = async {
            self.ctx.stop.cancelled().await;
            let before = *led.borrow();
            // The sender lives as long as the candidate.
            let _ = led.wait_for(|led| *led > before).await;
        };
        let mut count = self.led.subscribe();
        tokio::select! {
            biased;
            _ = count.wait_for(|led| *led >= terms) => {}
            () = last => {}
        }
    }

    /// Records that the candidate has stopped. Breaks if the client is closed.
    pub(super) fn ended(&self, done: Result<(), Ended>) -> ControlFlow<()> {
        match (self.current.take(), done) {
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

    /// Begins a term, and returns the term's work.
    pub(super) fn lead(
        &self,
        leadership: Leadership,
        mut rng: Rng,
    ) -> impl Future<Output = Result<(), Ended>> {
        // A term that begins while another one is in progress is recorded as a separate attempt, which the
        // checker reports.
        if self.current.borrow().is_none() {
            self.campaign();
        }
        let record = self.current.take();
        if let Some(record) = &record {
            record.granted(leadership.path(), Some(leadership.fence().as_u64()));
        }
        let mut term = Term::begin(self, record, leadership);
        async move { term.work(&mut rng).await }
    }
}
