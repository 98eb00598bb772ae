#[cfg(feature = "metrics")]
use super::recorder::recorded;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "metrics")]
use {
    metrics::{Key, Label, Level, Metadata, SharedString, with_recorder},
    std::mem::take,
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
    /// the user chose. It is there from now on, with zero when it was not yet.
    pub fn series(&'static self, client: &str, label: &'static str, value: &str) -> Series {
        self.series_of(client, &[(label, value)])
    }

    /// The series of this metric of that client with no other label; else as [`series`](Self::series).
    pub fn plain_series(&'static self, client: &str) -> Series {
        self.series_of(client, &[])
    }

    fn series_of(&'static self, client: &str, labels: &[(&'static str, &str)]) -> Series {
        let series = Series {
            metric: self,
            #[cfg(feature = "metrics")]
            key: {
                let labels = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned()));
                Key::from_parts(
                    self.name,
                    std::iter::once(of_client(&client.into())).chain(labels).collect::<Vec<_>>(),
                )
            },
        };
        #[cfg(feature = "metrics")]
        {
            let key = series.key.clone();
            recorded(move || {
                self.describe();
                self.register(&key);
            });
        }
        series
    }
}

/// One series of a [`Metric`]: that of a client, or of a thing that the user named.
#[derive(Clone)]
pub struct Series {
    metric: &'static Metric,
    #[cfg(feature = "metrics")]
    key: Key,
}

impl Series {
    /// Sets a gauge.
    pub fn set(&self, value: f64) {
        #[cfg(feature = "metrics")]
        self.with(move |metric, key| metric.set(key, value));
    }

    /// Adds to a gauge; less with a negative value.
    pub fn add(&self, value: f64) {
        #[cfg(feature = "metrics")]
        self.with(move |metric, key| metric.add(key, value));
    }

    /// Adds one to a counter.
    pub fn increment(&self) {
        #[cfg(feature = "metrics")]
        self.with(Metric::increment);
    }

    #[cfg(feature = "metrics")]
    fn with(&self, record: impl FnOnce(&'static Metric, &Key) + Send + 'static) {
        let (metric, key) = (self.metric, self.key.clone());
        recorded(move || record(metric, &key));
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("metric", &self.metric.name).finish_non_exhaustive()
    }
}

#[cfg(feature = "metrics")]
static METADATA: Metadata<'_> = Metadata::new("docent", Level::INFO, Some("docent"));

#[cfg(feature = "metrics")]
fn of_client(client: &Arc<str>) -> Label {
    Label::new("client", SharedString::from(Arc::clone(client)))
}

/// A key of `metric` with labels whose values are fixed.
#[cfg(feature = "metrics")]
pub(super) fn key<const LABELS: usize>(
    metric: &Metric,
    client: &Arc<str>,
    labels: [(&'static str, &'static str); LABELS],
) -> Key {
    let mut all = Vec::with_capacity(LABELS + 1);
    all.push(of_client(client));
    all.extend(labels.map(|(name, value)| Label::from_static_parts(name, value)));
    Key::from_parts(metric.name, take(&mut all))
}

/// Calls of the recorder, which is asked for the series each time, as it may be installed at any time.
#[cfg(feature = "metrics")]
impl Metric {
    pub(super) fn describe(&self) {
        let unit = match self.unit {
            MetricUnit::None => None,
            MetricUnit::Count => Some(metrics::Unit::Count),
            MetricUnit::Seconds => Some(metrics::Unit::Seconds),
        };
        let (name, help) = (self.name.into(), self.help.into());
        with_recorder(|recorder| match self.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
            Kind::Histogram => recorder.describe_histogram(name, unit, help),
        });
    }

    /// The series is there, with zero when it was not yet.
    pub(super) fn register(&self, key: &Key) {
        with_recorder(|recorder| match self.kind {
            Kind::Counter => drop(recorder.register_counter(key, &METADATA)),
            Kind::Gauge => drop(recorder.register_gauge(key, &METADATA)),
            Kind::Histogram => drop(recorder.register_histogram(key, &METADATA)),
        });
    }

    pub(super) fn increment(&self, key: &Key) {
        with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(1));
    }

    pub(super) fn set(&self, key: &Key, value: f64) {
        with_recorder(|recorder| recorder.register_gauge(key, &METADATA).set(value));
    }

    pub(super) fn add(&self, key: &Key, value: f64) {
        with_recorder(|recorder| recorder.register_gauge(key, &METADATA).increment(value));
    }

    pub(super) fn record(&self, key: &Key, value: f64) {
        with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(value));
    }
}
