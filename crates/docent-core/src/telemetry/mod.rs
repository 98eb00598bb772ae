//! Counters, gauges and timers of the feature `metrics`, through the `metrics` facade. Without the feature
//! they do nothing.
//!
//! Labels are the client's own label, recipe, operation, outcome and reason, whose values are few and fixed,
//! and names that users chose. A path is never a label.

#![cfg_attr(
    not(feature = "metrics"),
    allow(unused_variables, dead_code, unused_imports, reason = "nothing is counted without the feature")
)]

mod catalogue;
mod count;
mod introduce;
mod metric;
mod recorder;
mod span;
mod started;

pub(crate) use count::{
    acquired, cleanups, connected, kept_present, kept_wanted, late, operation, over, passed_on, retry,
    session_lost, state, suspended,
};
pub(crate) use introduce::{Introduced, introduce_client};
pub use metric::{Metric, MetricUnit, Series};
pub(crate) use recorder::record_on;
pub(crate) use span::{acquire_span, note_outcome, request_span};
pub(crate) use started::Started;
