//! Metrics and spans of elections.

use docent_core::recipe::{Metric, MetricUnit, Series};
use docent_core::{Client, Fence};
use tracing::{Span, field::Empty};

static LEADER: Metric =
    Metric::gauge("docent_leader", MetricUnit::None, "1 while this candidate leads, else 0.");

/// Returns the gauge of the election with the metrics name `name`.
pub(crate) fn leader(client: &Client, name: &str) -> Series {
    LEADER.series(client.label(), "election", name)
}

/// Returns the span of one term of leadership; a disabled span if no subscriber is interested.
pub(crate) fn term_span(client: &str, path: &str, fence: Fence) -> Span {
    tracing::info_span!(
        target: "docent::election",
        "term",
        docent.client = client,
        docent.path = path,
        docent.fence = %fence,
        docent.end = Empty,
    )
}
