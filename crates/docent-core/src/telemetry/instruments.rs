use super::catalogue as c;
use super::{Metric, Series, Started};
use crate::error::Error;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Metrics of a client and its recipes. Their series begin with zero, because an alert cannot tell zero from
/// a series that is missing.
pub(crate) struct Instruments {
    client: Arc<str>,
    state: Series,
    connected: Series,
    suspended: Series,
    session_lost: Family<1>,
    lateness: Series,
    durations: Family<2>,
    retries: Family<1>,
    cleanups: Series,
    kept_wanted: Series,
    kept_present: Series,
    /// By the label of the recipe.
    recipes: Mutex<HashMap<&'static str, Arc<RecipeInstruments>>>,
}

impl Instruments {
    /// Begins the series of the client with this label.
    pub(crate) fn new(client: &Arc<str>) -> Self {
        c::METRICS.iter().for_each(|metric| metric.describe());
        let plain = |metric: &'static Metric| metric.series_of(client, &[]);
        let instruments = Self {
            client: Arc::clone(client),
            state: plain(&c::CONNECTION_STATE),
            connected: plain(&c::CONNECTED),
            suspended: plain(&c::SUSPENDED),
            session_lost: Family::new(&c::SESSION_LOST, client, ["reason"]),
            lateness: plain(&c::LATENESS),
            durations: Family::new(&c::OP_DURATION, client, ["op", "outcome"]),
            retries: Family::new(&c::RETRIES, client, ["op"]),
            cleanups: plain(&c::CLEANUPS),
            kept_wanted: plain(&c::KEPT_WANTED),
            kept_present: plain(&c::KEPT_PRESENT),
            recipes: Mutex::default(),
        };
        instruments.session_lost.begin(c::ENDS.map(|end| [end]));
        instruments
            .durations
            .begin(c::TIMED.into_iter().flat_map(|op| c::OUTCOMES.map(|outcome| [op, outcome])));
        instruments.retries.begin(c::TIMED.into_iter().chain(c::RETRIED).map(|op| [op]));
        instruments
    }

    /// Label of the client.
    pub(crate) fn client(&self) -> &Arc<str> {
        &self.client
    }

    /// The metrics of the recipe with this label, and those of the retries of its `operations`.
    pub(crate) fn recipe(
        &self,
        label: &'static str,
        operations: impl Iterator<Item = &'static str>,
    ) -> Arc<RecipeInstruments> {
        self.retries.begin(operations.map(|op| [op]));
        if let Some(recipe) = lock(&self.recipes).get(label) {
            return Arc::clone(recipe);
        }
        // The recorder is called without the lock.
        let recipe = Arc::new(RecipeInstruments::new(&self.client, label));
        Arc::clone(lock(&self.recipes).entry(label).or_insert(recipe))
    }

    /// The client's state is the one of this number.
    pub(crate) fn state(&self, number: u8) {
        self.state.set(f64::from(number));
    }

    /// A session was attached to a server.
    pub(crate) fn connected(&self) {
        self.connected.increment();
    }

    /// The link of a session was lost.
    pub(crate) fn suspended(&self) {
        self.suspended.increment();
    }

    /// A session ended against the client's will, for the `reason` that is its label.
    pub(crate) fn session_lost(&self, reason: &'static str) {
        self.session_lost.get([reason]).increment();
    }

    /// An operation ended: with an answer, which may be a refusal, or with an error of the client.
    pub(crate) fn operation<T>(&self, operation: &'static str, started: Started, result: &Result<T, Error>) {
        self.durations.get([operation, outcome(result)]).record(started.elapsed());
    }

    /// An operation is tried again.
    pub(crate) fn retry(&self, operation: &'static str) {
        self.retries.get([operation]).increment();
    }

    /// Number of deletes that must happen and have not.
    pub(crate) fn cleanups(&self, open: usize) {
        self.cleanups.set(f64::from(u32::try_from(open).unwrap_or(u32::MAX)));
    }

    /// The session's task was polled so long after the time it had asked for: code that blocks the runtime's
    /// threads delays it.
    pub(crate) fn late(&self, lateness: Duration) {
        self.lateness.record(lateness);
    }

    /// So many nodes more, or less, are to be kept.
    pub(crate) fn kept_wanted(&self, more: f64) {
        self.kept_wanted.add(more);
    }

    /// So many kept nodes more, or less, are present.
    pub(crate) fn kept_present(&self, more: f64) {
        self.kept_present.add(more);
    }
}

impl fmt::Debug for Instruments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instruments").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Metrics of a client's guards of one recipe.
pub(crate) struct RecipeInstruments {
    waited: Series,
    held: Series,
    holding: Series,
    passed_on: Series,
    lost: Family<2>,
    label: &'static str,
}

impl RecipeInstruments {
    fn new(client: &Arc<str>, label: &'static str) -> Self {
        let of_recipe = |metric: &'static Metric| metric.series_of(client, &[("recipe", label)]);
        let lost = Family::new(&c::LOCK_LOST, client, ["recipe", "reason"]);
        lost.begin(c::LOSSES.map(|reason| [label, reason]));
        Self {
            waited: of_recipe(&c::LOCK_WAIT),
            held: of_recipe(&c::LOCK_HELD),
            holding: of_recipe(&c::LOCKS_HELD),
            passed_on: of_recipe(&c::LOCK_PASSED_ON),
            lost,
            label,
        }
    }

    /// A guard began, after a wait in its line.
    pub(crate) fn acquired(&self, waited: Duration) {
        self.waited.record(waited);
        self.holding.add(1.0);
    }

    /// A guard began with the ticket of another task of the process.
    pub(crate) fn passed_on(&self) {
        self.passed_on.increment();
    }

    /// A guard ended: released, or lost for the reason that is its label.
    pub(crate) fn ended(&self, held: Duration, lost: Option<&'static str>) {
        self.held.record(held);
        self.holding.add(-1.0);
        if let Some(reason) = lost {
            self.lost.get([self.label, reason]).increment();
        }
    }
}

/// Series of one metric that differ in the values of their labels.
struct Family<const LABELS: usize> {
    metric: &'static Metric,
    client: Arc<str>,
    names: [&'static str; LABELS],
    series: RwLock<HashMap<[&'static str; LABELS], Series>>,
}

impl<const LABELS: usize> Family<LABELS> {
    fn new(metric: &'static Metric, client: &Arc<str>, names: [&'static str; LABELS]) -> Self {
        Self { metric, client: Arc::clone(client), names, series: RwLock::default() }
    }

    /// Begins the series with these values.
    fn begin(&self, values: impl IntoIterator<Item = [&'static str; LABELS]>) {
        values.into_iter().for_each(|values| drop(self.get(values)));
    }

    fn get(&self, values: [&'static str; LABELS]) -> Series {
        if cfg!(not(feature = "metrics")) {
            return self.metric.series_of(&self.client, &[]);
        }
        let known = self.series.read().unwrap_or_else(PoisonError::into_inner).get(&values).cloned();
        known.unwrap_or_else(|| {
            let labels: Vec<_> = self.names.into_iter().zip(values).collect();
            // The recorder is called without the lock.
            let series = self.metric.series_of(&self.client, &labels);
            let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
            all.entry(values).or_insert(series).clone()
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Outcome of an operation, as a label.
pub(super) fn outcome<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Err(error) if error.may_have_applied() => "unknown",
        Err(error) if !error.is_refusal() => "failed",
        _ => "answered",
    }
}
