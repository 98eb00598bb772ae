//! Counters, gauges and timers of the feature `metrics`, through the `metrics` facade. Without the feature
//! they do nothing.
//!
//! The labels are the client's label, recipe, operation, outcome and reason, which have few and fixed values,
//! and names that users chose. A path is never a label.

#![cfg_attr(
    not(feature = "metrics"),
    allow(unused_variables, dead_code, unused_imports, reason = "nothing is counted without the feature")
)]

mod catalogue;
mod instruments;

pub(crate) use instruments::{
    Instruments, RecipeInstruments, Started, acquire_span, note_outcome, request_span,
};
pub use instruments::{Metric, MetricUnit, Series};
