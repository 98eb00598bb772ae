#[cfg(feature = "metrics")]
use crate::task::call_hook;
use std::fmt;
use std::time::Duration;
#[cfg(feature = "metrics")]
use {
    metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, with_recorder},
    std::iter::once,
};

/// Metric of a recipe, through the `metrics` facade: its name, kind, unit and meaning, said once.
///
/// Does nothing without the feature `metrics`.
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
    /// A number without a unit, such as a version, or 1 for yes and 0 for no.
    None,
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
}

impl Metric {
    /// A number that only grows.
    pub const fn counter(name: &'static str, unit: MetricUnit, help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, unit, help }
    }

    /// A number that goes up and down.
    pub const fn gauge(name: &'static str, unit: MetricUnit, help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, unit, help }
    }

    /// A distribution of values.
    pub const fn histogram(name: &'static str, unit: MetricUnit, help: &'static str) -> Self {
        Self { name, kind: Kind::Histogram, unit, help }
    }

    /// The series of this metric of the client that is labelled `client`, with one more label, whose value
    /// the user chose. It is registered at the recorder that is installed now, and begins with zero there.
    pub fn series(&'static self, client: &str, label: &'static str, value: &str) -> Series {
        self.series_of(client, &[(label, value)])
    }

    /// The series of this metric of that client with no other label; else as [`series`](Self::series).
    pub fn plain_series(&'static self, client: &str) -> Series {
        self.series_of(client, &[])
    }

    pub(super) fn series_of(&'static self, client: &str, labels: &[(&'static str, &str)]) -> Series {
        Series {
            metric: self,
            #[cfg(feature = "metrics")]
            handle: self.register(client, labels),
        }
    }

    /// Tells the recorder the metric's unit and meaning.
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

    #[cfg(feature = "metrics")]
    fn register(&self, client: &str, labels: &[(&'static str, &str)]) -> Handle {
        static METADATA: Metadata<'_> = Metadata::new("docent", Level::INFO, Some("docent"));
        self.describe();
        let labels = once(("client", client)).chain(labels.iter().copied());
        let labels: Vec<_> = labels.map(|(name, value)| Label::new(name, value.to_owned())).collect();
        let key = Key::from_parts(self.name, labels);
        let registered = recorded(|| {
            with_recorder(|recorder| match self.kind {
                Kind::Counter => Handle::Counter(recorder.register_counter(&key, &METADATA)),
                Kind::Gauge => Handle::Gauge(recorder.register_gauge(&key, &METADATA)),
                Kind::Histogram => Handle::Histogram(recorder.register_histogram(&key, &METADATA)),
            })
        });
        registered.unwrap_or(Handle::None)
    }
}

/// One series of a [`Metric`]: that of a client, or of a thing that the user named.
#[derive(Clone)]
pub struct Series {
    metric: &'static Metric,
    #[cfg(feature = "metrics")]
    handle: Handle,
}

/// Series in the program's recorder of metrics.
#[cfg(feature = "metrics")]
#[derive(Clone)]
enum Handle {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
    /// The recorder panicked when the series was registered.
    None,
}

impl Series {
    /// Sets a gauge.
    pub fn set(&self, value: f64) {
        #[cfg(feature = "metrics")]
        if let Handle::Gauge(gauge) = &self.handle {
            recorded(|| gauge.set(value));
        }
    }

    /// Adds to a gauge; less with a negative value.
    pub fn add(&self, value: f64) {
        #[cfg(feature = "metrics")]
        if let Handle::Gauge(gauge) = &self.handle {
            recorded(|| gauge.increment(value));
        }
    }

    /// Adds one to a counter.
    pub fn increment(&self) {
        #[cfg(feature = "metrics")]
        if let Handle::Counter(counter) = &self.handle {
            recorded(|| counter.increment(1));
        }
    }

    /// Adds a duration to a histogram, in seconds.
    pub(super) fn record(&self, duration: Duration) {
        #[cfg(feature = "metrics")]
        if let Handle::Histogram(histogram) = &self.handle {
            recorded(|| histogram.record(duration.as_secs_f64()));
        }
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("metric", &self.metric.name).finish_non_exhaustive()
    }
}

/// Calls the program's recorder of metrics, which is code of others and may panic.
#[cfg(feature = "metrics")]
fn recorded<T>(record: impl FnOnce() -> T) -> Option<T> {
    call_hook("recorder of metrics", "", record).ok()
}
