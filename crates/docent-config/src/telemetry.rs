//! Metrics and spans of configuration.

use docent_core::Client;
use docent_core::recipe::{Metric, MetricUnit, Series};
use tracing::{Span, field::Empty};

static APPLIED: Metric =
    Metric::counter("docent_config_applied_total", MetricUnit::Count, "Values that arrived and are valid.");
static REFUSED: Metric = Metric::counter(
    "docent_config_refused_total",
    MetricUnit::Count,
    "Values that were rejected: the last valid one stays in use.",
);
static VERSION: Metric =
    Metric::gauge("docent_config_version", MetricUnit::None, "Version of the value in use.");
static STALE: Metric = Metric::gauge(
    "docent_config_stale",
    MetricUnit::None,
    "1 while the value in use may be out of date, otherwise 0.",
);

/// Metric series of a followed configuration.
pub(crate) struct Counts {
    applied: Series,
    refused: Series,
    named: Option<Named>,
}

/// Gauges of a configuration that has a name in metrics.
struct Named {
    version: Series,
    stale: Series,
}

impl Counts {
    /// Creates the series, which exist from now on.
    pub(crate) fn new(client: &Client, name: Option<&str>) -> Self {
        let named = name.map(|name| Named {
            version: VERSION.series(client.label(), "config", name),
            stale: STALE.series(client.label(), "config", name),
        });
        Self {
            applied: APPLIED.plain_series(client.label()),
            refused: REFUSED.plain_series(client.label()),
            named,
        }
    }

    /// Counts a valid value.
    pub(crate) fn applied(&self) {
        self.applied.increment();
    }

    /// Counts a rejected value.
    pub(crate) fn refused(&self) {
        self.refused.increment();
    }

    /// Records the version of the value in use.
    pub(crate) fn version(&self, version: i32) {
        if let Some(named) = &self.named {
            named.version.set(f64::from(version));
        }
    }

    /// Records whether the value in use may be out of date.
    pub(crate) fn stale(&self, is_stale: bool) {
        if let Some(named) = &self.named {
            named.stale.set(if is_stale { 1.0 } else { 0.0 });
        }
    }
}

/// Returns the span of a publish, or a disabled span if no subscriber is interested.
pub(crate) fn publish_span(client: &str, path: &str) -> Span {
    tracing::info_span!(
        target: "docent::config",
        "publish",
        otel.kind = "producer",
        messaging.system = "docent",
        messaging.operation.name = "publish",
        messaging.operation.type = "send",
        messaging.destination.name = path,
        docent.client = client,
        docent.version = Empty,
    )
}
