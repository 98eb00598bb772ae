use super::candidate::{Candidate, Ended};
use crate::workload::hold::WRITTEN;
use crate::workload::record::Record;
use docent::{CreateMode, Leadership, Released};
use docent_checker::EventKind;
use fastrand::Rng;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest time between two checks of a term by its work: short compared to every margin.
const CHECK_MS: u64 = 12;

/// A term, and its work.
///
/// # On drop
/// Records how the work ended, and begins the candidate's next campaign unless the candidate is being
/// stopped. Records nothing if its process dies.
pub(super) struct Term<'a> {
    candidate: &'a Candidate<'a>,
    record: Option<Record>,
    /// `None` after the work has resigned.
    leadership: Option<Leadership>,
}

/// How work ends.
enum End {
    Done,
    Fails,
    /// The work resigns, and continues for a while.
    Resigns,
    /// The work continues until it is stopped.
    Never,
}

impl End {
    fn draw(rng: &mut Rng) -> Self {
        match rng.u8(..10) {
            0..=3 => Self::Done,
            4 => Self::Fails,
            5 => Self::Resigns,
            _ => Self::Never,
        }
    }
}

impl<'a> Term<'a> {
    /// Begins a term, and checks it immediately.
    pub(super) fn begin(
        candidate: &'a Candidate<'a>,
        record: Option<Record>,
        leadership: Leadership,
    ) -> Self {
        let term = Self { candidate, record, leadership: Some(leadership) };
        term.check();
        term
    }

    /// Runs the work until it ends on its own.
    pub(super) async fn work(&mut self, rng: &mut Rng) -> Result<(), Ended> {
        let candidate = self.candidate;
        let Candidate { ctx, workload, .. } = candidate;
        if workload.steady {
            return self.check_until_end().await;
        }
        let end = if ctx.stop.is_cancelled() { End::Done } else { End::draw(rng) };
        let until = Instant::now() + workload.pace.span(ctx, rng);
        // How long the work takes to stop after its token is cancelled.
        let stopping = candidate.grace.mul_f64(2.0 * rng.f64());
        let ever = matches!(end, End::Never);
        self.work_until(until, ever, stopping, rng).await;
        match end {
            End::Done | End::Never => {
                self.ends();
                Ok(())
            }
            End::Fails => {
                self.ends();
                Err(Ended::Work)
            }
            End::Resigns => {
                self.resign().await;
                sleep(workload.pace.span(ctx, rng)).await;
                Ok(())
            }
        }
    }

    /// Checks and uses the term until `until`, or without an end if `ever` is true, or for `stopping` after
    /// the token is cancelled.
    async fn work_until(&self, until: Instant, ever: bool, stopping: Duration, rng: &mut Rng) {
        let Some(leadership) = &self.leadership else { return };
        let token = leadership.token();
        let mut end = None;
        loop {
            if token.is_cancelled() {
                end.get_or_insert(Instant::now() + stopping);
            }
            if end.is_some_and(|end| Instant::now() >= end)
                || end.is_none() && !ever && Instant::now() >= until
                || end.is_none() && self.candidate.ctx.stop.is_cancelled() && Instant::now() >= until
            {
                return;
            }
            self.step(leadership, rng).await;
            sleep(Duration::from_millis(rng.u64(1..=CHECK_MS))).await;
        }
    }

    /// Checks the term, and does something under it. Nothing is asked first, because bound work need not ask.
    async fn step(&self, leadership: &Leadership, rng: &mut Rng) {
        let Some(record) = &self.record else { return };
        self.check();
        match rng.u8(..32) {
            0 => {
                let held = match leadership.verify().await {
                    Ok(()) => Some(true),
                    Err(error) if error.is_lost() => Some(false),
                    Err(_) => None,
                };
                record.each(|attempt| EventKind::Verified { attempt, held });
            }
            1 | 2 => self.commit(leadership, record, rng).await,
            // The grace is only for cleaning up.
            3..=16 if self.candidate.grace.is_zero() || leadership.is_held() => {
                let used = self
                    .candidate
                    .workload
                    .resource
                    .use_with(self.candidate.path, leadership.fence().as_u64());
                record.each(|attempt| EventKind::Used(attempt, used));
            }
            _ => {}
        }
    }

    /// Creates a node that is named after the attempt.
    async fn commit(&self, leadership: &Leadership, record: &Record, rng: &mut Rng) {
        let node = format!("{WRITTEN}/{}-{:08x}", record.id(), rng.u32(..));
        let committed = leadership.transaction().create(&node, "", CreateMode::Persistent).commit().await;
        let applied = match committed {
            Ok(_) => Some(true),
            Err(error) if error.may_have_applied() => None,
            Err(_) => Some(false),
        };
        record.each(|attempt| EventKind::Committed { attempt, applied });
    }

    /// Checks the term now and then, as long as the term lasts.
    async fn check_until_end(&self) -> Result<(), Ended> {
        loop {
            sleep(self.candidate.ctx.setting.timeout / 5).await;
            self.check();
        }
    }

    fn check(&self) {
        let (Some(record), Some(leadership)) = (&self.record, &self.leadership) else { return };
        let held = leadership.is_held();
        // While a candidate is being stopped, its token is cancelled although it still leads.
        let cancelled = leadership.token().is_cancelled() && !(held && self.candidate.stopping.get());
        record.each(|attempt| EventKind::HeldChecked { attempt, held, cancelled });
    }

    /// Records that the work is done. From here on another candidate may lead.
    fn ends(&mut self) {
        if let Some(record) = self.record.take() {
            self.record_loss(&record);
            record.releasing();
        }
    }

    async fn resign(&mut self) {
        let Some(leadership) = self.leadership.take() else { return };
        if let Some(record) = &self.record {
            record.releasing();
            let resigned = leadership.resign().await;
            record.released(matches!(resigned, Ok(Released::Done)));
        }
        self.record = None;
    }

    fn record_loss(&self, record: &Record) {
        if self.leadership.as_ref().is_some_and(|leadership| !leadership.is_held()) {
            record.each(EventKind::Lost);
        }
    }
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        let Candidate { ctx, led, stopping, .. } = self.candidate;
        if ctx.controls.is_dying() {
            return;
        }
        if let Some(record) = self.record.take() {
            self.record_loss(&record);
        }
        led.send_modify(|led| *led += 1);
        if !stopping.get() {
            self.candidate.campaign();
        }
    }
}
