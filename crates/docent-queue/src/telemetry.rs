//! The recipe kind of queues, and their metrics and spans.

use docent_core::recipe::{Metric, MetricUnit, RecipeKind, Series, Stage};
use docent_core::{Client, Fence};
use std::time::{Duration, SystemTime};
use tracing::{Span, field::Empty};

pub(crate) static KIND: RecipeKind = RecipeKind::new("queue", "take")
    .also(&["ack", "give back", "put back", "reschedule"])
    .released_in(Stage::Deliveries);

static DEPTH: Metric = Metric::gauge(
    "docent_queue_depth",
    MetricUnit::Count,
    "Items in the queue, as a consumer of this process saw them last.",
);
static HEAD_AGE: Metric = Metric::gauge(
    "docent_queue_head_age_seconds",
    MetricUnit::Seconds,
    "Age of the first item of the queue when this process saw it last.",
);

/// Gauges of a queue, if it has a name in metrics.
pub(crate) struct QueueGauges {
    depth: Option<Series>,
    head_age: Option<Series>,
}

impl QueueGauges {
    pub(crate) fn new(client: &Client, name: Option<&str>) -> Self {
        let series = |metric: &'static Metric| Some(metric.series(client.label(), "queue", name?));
        Self { depth: series(&DEPTH), head_age: series(&HEAD_AGE) }
    }

    /// Records the number of items.
    pub(crate) fn depth(&self, items: usize) {
        if let Some(depth) = &self.depth {
            depth.set(f64::from(u32::try_from(items).unwrap_or(u32::MAX)));
        }
        if items == 0 {
            self.head_age(Duration::ZERO);
        }
    }

    /// Records since when the first item has been in the queue.
    pub(crate) fn head(&self, since: SystemTime) {
        self.head_age(SystemTime::now().duration_since(since).unwrap_or_default());
    }

    fn head_age(&self, age: Duration) {
        if let Some(head_age) = &self.head_age {
            head_age.set(age.as_secs_f64());
        }
    }
}

/// Returns the span of a put of `items` items; a disabled span if no subscriber is interested.
pub(crate) fn publish_span(client: &str, path: &str, items: usize) -> Span {
    tracing::info_span!(
        target: "docent::queue",
        "publish",
        otel.kind = "producer",
        messaging.system = "docent",
        messaging.operation.name = "put",
        messaging.operation.type = "send",
        messaging.destination.name = path,
        messaging.batch.message_count = items,
        docent.client = client,
    )
}

/// Returns the span of an item from its hand-out to its end; a disabled span if no subscriber is interested.
pub(crate) fn delivery_span(
    client: &str,
    path: &str,
    item: &str,
    fence: Fence,
    deliveries: Option<u32>,
) -> Span {
    tracing::info_span!(
        target: "docent::queue",
        "delivery",
        otel.kind = "consumer",
        messaging.system = "docent",
        messaging.operation.name = "take",
        messaging.operation.type = "process",
        messaging.destination.name = path,
        messaging.message.id = item,
        docent.client = client,
        docent.fence = %fence,
        docent.deliveries = deliveries,
        docent.end = Empty,
    )
}
