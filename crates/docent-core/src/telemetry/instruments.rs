use super::catalogue as c;
use crate::error::Error;
#[cfg(feature = "metrics")]
use crate::task::call_hook;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tracing::Span;
use tracing::field::{Empty, debug};
#[cfg(feature = "metrics")]
use {
    metrics::{Key, Label, Level, Metadata, SharedString, with_recorder},
    std::iter::once,
};

/// Metrics of a client and its recipes. Each series exists, with zero, before its first event, because an
/// alert cannot distinguish zero from a missing series. Instruments keep the series of frequent events and
/// build those of rare events on demand, so that an idle client stays small.
pub(crate) struct Instruments {
    client: Arc<str>,
    /// Series by operation and outcome.
    durations: RwLock<HashMap<[&'static str; 2], Arc<Series>>>,
    /// Instruments by the label of the recipe.
    recipes: Mutex<HashMap<&'static str, Arc<RecipeInstruments>>>,
}

impl Instruments {
    /// Registers the series of the client with this label.
    pub(crate) fn new(client: &Arc<str>) -> Self {
        let (durations, recipes) = (RwLock::default(), Mutex::default());
        let instruments = Self { client: Arc::clone(client), durations, recipes };
        c::METRICS.iter().for_each(|metric| metric.describe());
        for metric in [
            &c::CONNECTION_STATE,
            &c::CONNECTED,
            &c::SUSPENDED,
            &c::LATENESS,
            &c::CLEANUPS,
            &c::KEPT_WANTED,
            &c::KEPT_PRESENT,
        ] {
            instruments.series(metric, &[]).begun();
        }
        for end in c::ENDS {
            instruments.series(&c::SESSION_LOST, &[("reason", end)]).begun();
        }
        for op in c::TIMED {
            for outcome in c::OUTCOMES {
                instruments.duration([op, outcome]).begun();
            }
        }
        instruments.begin_retries(c::TIMED.into_iter().chain(c::RETRIED));
        instruments
    }

    /// Returns the label of the client.
    pub(crate) fn client(&self) -> &Arc<str> {
        &self.client
    }

    fn series(&self, metric: &'static Metric, labels: &[(&'static str, &'static str)]) -> Series {
        metric.series_of(&self.client, labels)
    }

    fn duration(&self, [op, outcome]: [&'static str; 2]) -> Series {
        self.series(&c::OP_DURATION, &[("op", op), ("outcome", outcome)])
    }

    fn begin_retries(&self, operations: impl Iterator<Item = &'static str>) {
        for op in operations {
            self.series(&c::RETRIES, &[("op", op)]).begun();
        }
    }

    /// Returns the metrics of the recipe with this label. Also registers the series of retries of its
    /// `operations`.
    pub(crate) fn recipe(
        &self,
        label: &'static str,
        operations: impl Iterator<Item = &'static str>,
    ) -> Arc<RecipeInstruments> {
        if let Some(recipe) = lock(&self.recipes).get(label) {
            return Arc::clone(recipe);
        }
        // Called without the lock, because the recorder is user code.
        self.begin_retries(operations);
        let recipe = Arc::new(RecipeInstruments::new(&self.client, label));
        Arc::clone(lock(&self.recipes).entry(label).or_insert(recipe))
    }

    /// Records the client's state by its number.
    pub(crate) fn state(&self, number: u8) {
        self.series(&c::CONNECTION_STATE, &[]).set(f64::from(number));
    }

    /// Records that a session was attached to a server.
    pub(crate) fn connected(&self) {
        self.series(&c::CONNECTED, &[]).increment();
    }

    /// Records that a session lost its link.
    pub(crate) fn suspended(&self) {
        self.series(&c::SUSPENDED, &[]).increment();
    }

    /// Records that a session ended without being closed by the client, with `reason` as its label.
    pub(crate) fn session_lost(&self, reason: &'static str) {
        self.series(&c::SESSION_LOST, &[("reason", reason)]).increment();
    }

    /// Records the end of an operation, either with an answer, which may be a refusal, or with an error of
    /// the client.
    pub(crate) fn operation<T>(&self, operation: &'static str, started: Started, result: &Result<T, Error>) {
        if cfg!(not(feature = "metrics")) {
            return;
        }
        let labels = [operation, outcome(result)];
        let known = self.durations.read().unwrap_or_else(PoisonError::into_inner).get(&labels).cloned();
        let series = known.unwrap_or_else(|| {
            let mut all = self.durations.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(labels).or_insert_with(|| Arc::new(self.duration(labels))))
        });
        series.record(started.elapsed());
    }

    /// Records a retry of an operation.
    pub(crate) fn retry(&self, operation: &'static str) {
        self.series(&c::RETRIES, &[("op", operation)]).increment();
    }

    /// Records the number of pending deletes.
    pub(crate) fn cleanups(&self, open: usize) {
        self.series(&c::CLEANUPS, &[]).set(f64::from(u32::try_from(open).unwrap_or(u32::MAX)));
    }

    /// Records how late the session's task was polled. Code that blocks the runtime's threads delays that
    /// task.
    pub(crate) fn late(&self, lateness: Duration) {
        self.series(&c::LATENESS, &[]).record(lateness);
    }

    /// Changes the number of nodes to keep by `more`, which may be negative.
    pub(crate) fn kept_wanted(&self, more: f64) {
        self.series(&c::KEPT_WANTED, &[]).add(more);
    }

    /// Changes the number of present kept nodes by `more`, which may be negative.
    pub(crate) fn kept_present(&self, more: f64) {
        self.series(&c::KEPT_PRESENT, &[]).add(more);
    }
}

impl fmt::Debug for Instruments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instruments").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Metrics of a client's guards of one recipe.
pub(crate) struct RecipeInstruments {
    client: Arc<str>,
    label: &'static str,
    waited: Series,
    held: Series,
    holding: Series,
}

impl RecipeInstruments {
    fn new(client: &Arc<str>, label: &'static str) -> Self {
        let of_recipe = |metric: &'static Metric| metric.series_of(client, &[("recipe", label)]).begun();
        of_recipe(&c::LOCK_PASSED_ON);
        let recipe = Self {
            client: Arc::clone(client),
            label,
            waited: of_recipe(&c::LOCK_WAIT),
            held: of_recipe(&c::LOCK_HELD),
            holding: of_recipe(&c::LOCKS_HELD),
        };
        for reason in c::LOSSES {
            recipe.lost(reason).begun();
        }
        recipe
    }

    fn lost(&self, reason: &'static str) -> Series {
        c::LOCK_LOST.series_of(&self.client, &[("recipe", self.label), ("reason", reason)])
    }

    /// Records that a guard began after a wait in its line.
    pub(crate) fn acquired(&self, waited: Duration) {
        self.waited.record(waited);
        self.holding.add(1.0);
    }

    /// Records that a guard began with the ticket of another task in the process.
    pub(crate) fn passed_on(&self) {
        c::LOCK_PASSED_ON.series_of(&self.client, &[("recipe", self.label)]).increment();
    }

    /// Records that a guard was released, or lost for the reason in its label.
    pub(crate) fn ended(&self, held: Duration, lost: Option<&'static str>) {
        self.held.record(held);
        self.holding.add(-1.0);
        if let Some(reason) = lost {
            self.lost(reason).increment();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the outcome of an operation, as a label.
pub(super) fn outcome<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Err(error) if error.may_have_applied() => "unknown",
        Err(error) if !error.is_refusal() => "failed",
        _ => "answered",
    }
}

/// Start time of something whose duration is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    #[cfg(feature = "metrics")]
    at: std::time::Instant,
}

impl Started {
    pub(crate) fn now() -> Self {
        Self {
            #[cfg(feature = "metrics")]
            at: std::time::Instant::now(),
        }
    }

    /// Returns the time since the start; zero without the feature `metrics`.
    pub(super) fn elapsed(self) -> Duration {
        #[cfg(feature = "metrics")]
        return self.at.elapsed();
        #[cfg(not(feature = "metrics"))]
        Duration::ZERO
    }
}

// Metrics and their series.

/// Metric of a recipe, for the `metrics` facade: its name, kind, unit and description, defined once.
///
/// Has no effect without the feature `metrics`.
#[derive(Debug, Clone)]
pub struct Metric {
    name: &'static str,
    kind: Kind,
    unit: MetricUnit,
    help: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Unit of a [`Metric`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricUnit {
    /// Number without a unit, such as a version, or 1 for yes and 0 for no.
    None,
    /// Number of things.
    Count,
    /// Seconds.
    Seconds,
}

impl Metric {
    /// Creates a metric that only increases.
    pub const fn counter(name: &'static str, unit: MetricUnit, help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, unit, help }
    }

    /// Creates a metric that can increase and decrease.
    pub const fn gauge(name: &'static str, unit: MetricUnit, help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, unit, help }
    }

    /// Creates a distribution of values.
    pub const fn histogram(name: &'static str, unit: MetricUnit, help: &'static str) -> Self {
        Self { name, kind: Kind::Histogram, unit, help }
    }

    /// Returns this metric's series for the client with the label `client` and one more label, whose value
    /// the user chose. The series starts at zero in the recorder that is currently installed.
    pub fn series(&'static self, client: &str, label: &'static str, value: &str) -> Series {
        self.describe();
        Series {
            metric: self,
            #[cfg(feature = "metrics")]
            key: self.key(client.to_owned().into(), once(Label::new(label, value.to_owned()))),
        }
        .begun()
    }

    /// Returns this metric's series for that client without another label; otherwise like
    /// [`series`](Self::series).
    pub fn plain_series(&'static self, client: &str) -> Series {
        self.describe();
        self.series_of(&client.into(), &[]).begun()
    }

    /// Returns the series with labels whose values are fixed. Neither describes the metric nor registers the
    /// series.
    pub(super) fn series_of(
        &'static self,
        client: &Arc<str>,
        labels: &[(&'static str, &'static str)],
    ) -> Series {
        Series {
            metric: self,
            #[cfg(feature = "metrics")]
            key: self.key(
                Arc::clone(client).into(),
                labels.iter().map(|(name, value)| Label::from_static_parts(name, value)),
            ),
        }
    }

    #[cfg(feature = "metrics")]
    fn key(&self, client: SharedString, labels: impl Iterator<Item = Label>) -> Key {
        Key::from_parts(self.name, once(Label::new("client", client)).chain(labels).collect::<Vec<_>>())
    }

    /// Registers the metric's unit and description with the recorder.
    pub(super) fn describe(&self) {
        #[cfg(feature = "metrics")]
        {
            let unit = match self.unit {
                MetricUnit::None => None,
                MetricUnit::Count => Some(metrics::Unit::Count),
                MetricUnit::Seconds => Some(metrics::Unit::Seconds),
            };
            let (name, help) = (self.name.into(), self.help.into());
            recorded(|| {
                with_recorder(|recorder| match self.kind {
                    Kind::Counter => recorder.describe_counter(name, unit, help),
                    Kind::Gauge => recorder.describe_gauge(name, unit, help),
                    Kind::Histogram => recorder.describe_histogram(name, unit, help),
                });
            });
        }
    }
}

/// One series of a [`Metric`]: that of a client, or of a value that the user named.
///
/// Each event asks the recorder for the series, because a recorder may be installed later, or drop a series
/// that was idle.
#[derive(Clone)]
pub struct Series {
    metric: &'static Metric,
    #[cfg(feature = "metrics")]
    key: Key,
}

#[cfg(feature = "metrics")]
static METADATA: Metadata<'_> = Metadata::new("docent", Level::INFO, Some("docent"));

impl Series {
    /// Registers the series with the recorder, so that it exists before the first event.
    pub(super) fn begun(self) -> Self {
        #[cfg(feature = "metrics")]
        recorded(|| {
            with_recorder(|recorder| match self.metric.kind {
                Kind::Counter => drop(recorder.register_counter(&self.key, &METADATA)),
                Kind::Gauge => drop(recorder.register_gauge(&self.key, &METADATA)),
                Kind::Histogram => drop(recorder.register_histogram(&self.key, &METADATA)),
            });
        });
        self
    }

    /// Sets a gauge.
    pub fn set(&self, value: f64) {
        #[cfg(feature = "metrics")]
        recorded(|| with_recorder(|recorder| recorder.register_gauge(&self.key, &METADATA).set(value)));
    }

    /// Adds to a gauge; a negative value subtracts.
    pub fn add(&self, value: f64) {
        #[cfg(feature = "metrics")]
        recorded(|| with_recorder(|recorder| recorder.register_gauge(&self.key, &METADATA).increment(value)));
    }

    /// Adds one to a counter.
    pub fn increment(&self) {
        #[cfg(feature = "metrics")]
        recorded(|| with_recorder(|recorder| recorder.register_counter(&self.key, &METADATA).increment(1)));
    }

    /// Adds a duration to a histogram, in seconds.
    pub(super) fn record(&self, duration: Duration) {
        #[cfg(feature = "metrics")]
        {
            let seconds = duration.as_secs_f64();
            recorded(|| {
                with_recorder(|recorder| {
                    recorder.register_histogram(&self.key, &METADATA).record(seconds);
                });
            });
        }
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("metric", &self.metric.name).finish_non_exhaustive()
    }
}

/// Calls the program's metrics recorder, which is third-party code and may panic.
#[cfg(feature = "metrics")]
fn recorded(record: impl FnOnce()) {
    let _ = call_hook("recorder of metrics", "", record);
}

// Spans. If no subscriber is interested, a span costs only the check of its level, and records nothing.

/// Creates the span of a request of the client labelled `client`.
pub(crate) fn request_span(client: &str, operation: &'static str, path: &str) -> Span {
    tracing::debug_span!(
        target: "docent::request",
        "request",
        otel.kind = "client",
        db.system.name = "zookeeper",
        db.operation.name = operation,
        docent.client = client,
        docent.path = path,
        docent.outcome = Empty,
        docent.error = Empty,
    )
}

/// Records in the current request's span how the request ended.
pub(crate) fn note_outcome<T>(result: &Result<T, Error>) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("docent.outcome", outcome(result));
    if let Err(error) = result {
        span.record("docent.error", debug(error.kind()));
    }
}

/// Creates the span of the wait for a place in the line at `path`.
pub(crate) fn acquire_span(client: &str, recipe: &'static str, path: &str) -> Span {
    tracing::info_span!(
        target: "docent::lock",
        "acquire",
        docent.client = client,
        docent.recipe = recipe,
        docent.path = path,
        docent.fence = Empty,
    )
}
