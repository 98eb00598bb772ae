use super::candidate::{Candidate, Ended};
use crate::workload::hold::WRITTEN;
use crate::workload::record::Record;
use docent::{CreateMode, Leadership};
use docent_checker::EventKind;
use fastrand::Rng;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest time between two looks of work at its term: short against every margin.
const LOOK_MS: u64 = 12;

/// A term, and the work in it.
///
/// # On drop
/// The work is over: it is written down how, and the candidate stands again.
pub(super) struct Term<'a> {
    candidate: &'a Candidate<'a>,
    record: Option<Record>,
    /// Until it resigns by itself.
    leadership: Option<Leadership>,
}

/// How work ends.
enum End {
    Done,
    Fails,
    /// It resigns, and goes on for a while.
    Resigns,
    /// It goes on for as long as it is let.
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
    /// It looks at once.
    pub(super) fn begin(
        candidate: &'a Candidate<'a>,
        record: Option<Record>,
        leadership: Leadership,
    ) -> Self {
        let term = Self { candidate, record, leadership: Some(leadership) };
        term.look();
        term
    }

    /// The work, until it ends by itself.
    pub(super) async fn work(&mut self, rng: &mut Rng) -> Result<(), Ended> {
        let candidate = self.candidate;
        let Candidate { ctx, workload, .. } = candidate;
        if workload.steady {
            return self.watch_over().await;
        }
        let end = if ctx.stop.is_cancelled() { End::Done } else { End::draw(rng) };
        let until = Instant::now() + workload.pace.span(ctx, rng);
        // How long it takes to stop once it was told to.
        let stopping = candidate.grace.mul_f64(2.0 * rng.f64());
        let ever = matches!(end, End::Never);
        self.toil(until, ever, stopping, rng).await;
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

    /// Looks and uses until then, or for ever, or until so long after it was told to stop.
    async fn toil(&self, until: Instant, ever: bool, stopping: Duration, rng: &mut Rng) {
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
            sleep(Duration::from_millis(rng.u64(1..=LOOK_MS))).await;
        }
    }

    /// A look, and something done in the term: without asking first, because bound work need not ask.
    async fn step(&self, leadership: &Leadership, rng: &mut Rng) {
        let Some(record) = &self.record else { return };
        self.look();
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
            // Its grace is for putting things away.
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

    /// Looks now and then, for as long as it leads.
    async fn watch_over(&self) -> Result<(), Ended> {
        loop {
            sleep(self.candidate.ctx.setting.timeout / 5).await;
            self.look();
        }
    }

    fn look(&self) {
        let (Some(record), Some(leadership)) = (&self.record, &self.leadership) else { return };
        let held = leadership.is_held();
        // A candidate that is being stopped is told so while it leads.
        let cancelled = leadership.token().is_cancelled() && !(held && self.candidate.stopping.get());
        record.each(|attempt| EventKind::Looked { attempt, held, cancelled });
    }

    /// The work is done: from here on the term is another's.
    fn ends(&mut self) {
        if let Some(record) = self.record.take() {
            self.tell_loss(&record);
            record.releasing();
        }
    }

    async fn resign(&mut self) {
        let Some(leadership) = self.leadership.take() else { return };
        if let Some(record) = &self.record {
            record.releasing();
            let resigned = leadership.resign().await;
            record.released(resigned.is_ok());
        }
        self.record = None;
    }

    fn tell_loss(&self, record: &Record) {
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
            self.tell_loss(&record);
        }
        led.send_modify(|led| *led += 1);
        if !stopping.get() {
            self.candidate.stand();
        }
    }
}
