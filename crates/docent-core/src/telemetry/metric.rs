#[cfg(feature = "metrics")]
use crate::task::call_hook;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "metrics")]
use {
    metrics::{Key, Label, Level, Metadata, SharedString, with_recorder},
    std::iter::once,
};

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
