//! Spans. If no subscriber is interested, a span costs only the check of its level, and records nothing.

use super::instruments::outcome;
use crate::error::Error;
use tracing::{
    Span,
    field::{Empty, debug},
};

/// Creates the span of a request of the client labelled `client`.
pub(crate) fn request_span(client: &str, operation: &'static str, path: &str) -> Span {
    tracing::debug_span!(
        target: "docent::request",
        "request",
        otel.kind = "client",
        db.system.name = "zookeeper",
        db.operation.name = operation,
        docent.client = client,
        docent.path = path,
        docent.outcome = Empty,
        docent.error = Empty,
    )
}

/// Records in the current request's span how the request ended.
pub(crate) fn note_outcome<T>(result: &Result<T, Error>) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("docent.outcome", outcome(result));
    if let Err(error) = result {
        span.record("docent.error", debug(error.kind()));
    }
}

/// Creates the span of the wait for a place in the line at `path`.
pub(crate) fn acquire_span(client: &str, recipe: &'static str, path: &str) -> Span {
    tracing::info_span!(
        target: "docent::lock",
        "acquire",
        docent.client = client,
        docent.recipe = recipe,
        docent.path = path,
        docent.fence = Empty,
    )
}
