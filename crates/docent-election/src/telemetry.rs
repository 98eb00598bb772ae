//! Metrics and spans of elections.

use docent_core::recipe::{Metric, MetricUnit, Series};
use docent_core::{Client, Fence};
use tracing::{Span, field::Empty};

static LEADER: Metric =
    Metric::gauge("docent_leader", MetricUnit::None, "1 while this candidate leads, else 0.");

/// The gauge of the election that the user named so.
pub(crate) fn leader(client: &Client, name: &str) -> Series {
    LEADER.series(client.label(), "election", name)
}

/// Span of one term of leadership. Where nobody listens it is none.
pub(crate) fn term_span(client: &str, path: &str, fence: Fence) -> Span {
    tracing::info_span!(
        "term",
        docent.client = client,
        docent.path = path,
        docent.fence = %fence,
        docent.end = Empty,
    )
}
