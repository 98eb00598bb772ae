//! Metrics of services. The names of services are labels, because users choose them and they are few.

use docent_core::Client;
use docent_core::recipe::{Metric, MetricUnit, Series};

static REGISTRATIONS: Metric = Metric::gauge(
    "docent_registrations",
    MetricUnit::Count,
    "Instances of the service that this client announces.",
);
static INSTANCES: Metric = Metric::gauge(
    "docent_service_instances",
    MetricUnit::Count,
    "Instances of a followed service that may be picked.",
);
static STALE: Metric = Metric::gauge(
    "docent_service_stale",
    MetricUnit::None,
    "1 while the instances of a followed service may be out of date, otherwise 0.",
);

/// Counts an announced instance of a service until this value is dropped.
pub(crate) struct Announced(Series);

impl Announced {
    pub(crate) fn new(client: &Client, service: &str) -> Self {
        let series = REGISTRATIONS.series(client.label(), "service", service);
        series.add(1.0);
        Self(series)
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}

/// Gauges of a followed service.
pub(crate) struct ServiceGauges {
    instances: Series,
    stale: Series,
}

impl ServiceGauges {
    pub(crate) fn new(client: &Client, service: &str) -> Self {
        let instances = INSTANCES.series(client.label(), "service", service);
        let stale = STALE.series(client.label(), "service", service);
        stale.set(1.0);
        Self { instances, stale }
    }

    /// Records how many instances may be picked, and whether they may be out of date.
    pub(crate) fn show(&self, instances: usize, is_stale: bool) {
        self.instances.set(f64::from(u32::try_from(instances).unwrap_or(u32::MAX)));
        self.stale.set(if is_stale { 1.0 } else { 0.0 });
    }
}
