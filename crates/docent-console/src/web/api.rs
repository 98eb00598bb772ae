use super::answer::status;
use super::routes::Shared;
use crate::console::Inner;
use crate::pages::{Filter, milliseconds, path_segments};
use crate::world::Link;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use docent::inspect::{Recipe, Report, Vitals};
use http::{StatusCode, Uri};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Text of an answer to a request that got no permit to read.
pub(super) const BUSY: &str = "too many requests wait for ZooKeeper; try again";

/// Maximum number of recipes in an answer.
const MAX_RECIPES: usize = 10_000;

/// Recipes with the state of the view.
#[derive(Serialize)]
struct Recipes<'a> {
    root: &'a str,
    is_stale: bool,
    /// Number of recipes that the filters select. An answer has at most 10,000 of them, from `from` on.
    total: usize,
    recipes: Vec<Value>,
}

/// Servers of the ensemble, as `docent ensemble -o json` shows them.
#[derive(Serialize)]
struct Ensemble<'a> {
    servers: Vec<&'a Vitals>,
}

/// All recipes, with the filters of the pages.
pub(super) async fn recipes(State(inner): Shared, Query(filter): Query<Filter>) -> Response {
    let (now, shows_data) = (inner.world.now(), inner.pen().shows_data);
    if let Err(text) = filter.minimum_age() {
        let rule = format!("older {text:?} must be a time such as 90s, 10m or 2h");
        return error(StatusCode::BAD_REQUEST, &rule);
    }
    let mut found = inner.world.select(|report| filter.selects(report, now, shows_data));
    filter.sort(&mut found, shows_data);
    let window = found.iter().skip(filter.from).take(MAX_RECIPES);
    let recipes = window.map(|report| aged(&inner, report)).collect();
    let (root, is_stale, total) = (&*inner.settings.root, is_stale(&inner), found.len());
    Json(Recipes { root, is_stale, total, recipes }).into_response()
}

/// The report on one path.
pub(super) async fn at(State(inner): Shared, uri: Uri) -> Response {
    let rest = uri.path().strip_prefix("/api/v1/at").unwrap_or_default().trim_start_matches('/');
    let Some(path) = path_segments(rest).filter(|path| inner.is_below_root(path)) else {
        return error(StatusCode::FORBIDDEN, &format!("the path is not below {}", inner.settings.root));
    };
    let answer = |mut report: Value, is_stale: bool| {
        report["is_stale"] = is_stale.into();
        Json(report).into_response()
    };
    if let Some(report) = inner.world.report(&path) {
        return answer(aged(&inner, &report), is_stale(&inner));
    }
    let Some(_permit) = inner.read_permit().await else {
        return error(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    };
    match inner.inspector.path(&path).await {
        Ok(report) if matches!(report.recipe, Recipe::Absent) => {
            error(StatusCode::NOT_FOUND, &format!("{path} does not exist"))
        }
        Ok(report) => answer(shown(&inner, &report), false),
        Err(failed) => error(status(&failed), &failed.to_string()),
    }
}

/// What the servers reported last, in the order of the connect string. A server that was not queried yet is
/// missing.
pub(super) async fn ensemble(State(inner): Shared) -> Response {
    let servers = inner.world.servers(inner.client.servers());
    let servers: Vec<_> = servers.filter_map(|(_, vitals)| vitals).collect();
    let servers: Vec<_> = servers.iter().map(Arc::as_ref).collect();
    Json(Ensemble { servers }).into_response()
}

/// JSON Schema of the answers.
pub(super) async fn schema() -> Response {
    let kind = [(CONTENT_TYPE, "application/schema+json")];
    (kind, include_str!("../../assets/schema.json")).into_response()
}

fn is_stale(inner: &Inner) -> bool {
    inner.world.link().0 != Link::Current
}

/// Returns a report of the world as JSON, like [`shown`], with present ages.
fn aged(inner: &Inner, report: &Report) -> Value {
    let mut report = shown(inner, report);
    age(&mut report, milliseconds(inner.world.now()));
    report
}

/// Returns a report as JSON, without what services have stored if that is hidden.
fn shown(inner: &Inner, report: &Report) -> Value {
    let mut report = Cow::Borrowed(report);
    if !inner.pen().shows_data {
        let report = report.to_mut();
        match &mut report.recipe {
            Recipe::Service(service) => service.instances.iter_mut().for_each(|one| one.payload = None),
            Recipe::Queue(queue) => queue.dead_letters.iter_mut().for_each(|letter| letter.detail = None),
            Recipe::Membership(group) => group.members.iter_mut().for_each(|member| member.data = None),
            Recipe::DoubleBarrier(barrier) => {
                barrier.members.iter_mut().for_each(|member| member.data = None);
            }
            Recipe::Partition(partition) => {
                partition.members.iter_mut().for_each(|member| member.data = None);
            }
            Recipe::Counter(counter) => counter.number.clear(),
            // It may be a value that is an address.
            Recipe::Barrier(barrier) => barrier.identity = None,
            _ => {}
        }
    }
    serde_json::to_value(&*report).expect("a report is valid JSON")
}

/// Sets all ages in a report, which are those at its last change, to those at `now`.
fn age(value: &mut Value, now: u64) {
    match value {
        Value::Object(fields) => {
            let time = |name: &str| fields.get(name).and_then(Value::as_u64);
            let (age, is_over) = (time("since_ms").map(|since| now.saturating_sub(since)), time("end_ms"));
            let is_over = is_over.map(|end| end < now);
            for (name, value) in fields.iter_mut() {
                match (&**name, age, is_over) {
                    ("age_ms", Some(age), _) => *value = age.into(),
                    ("is_over", _, Some(is_over)) => *value = is_over.into(),
                    ("now_ms", ..) => *value = now.into(),
                    // What a service has stored.
                    ("payload", ..) => {}
                    _ => self::age(value, now),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| age(value, now)),
        _ => {}
    }
}

pub(super) fn error(status: StatusCode, text: &str) -> Response {
    let body: Value = json!({ "error": text });
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_now() {
        let mut report = json!({
            "clock": { "now_ms": 1_000, "source": "own_node" }, "held": { "since_ms": 900, "age_ms": 100 },
            "waiters": [{ "since_ms": 2_000, "age_ms": 0, "name": "age_ms" }], "end_ms": 1_500, "is_over": false,
            "payload": { "now_ms": 1 },
        });
        age(&mut report, 1_700);
        let expected = json!({
            "clock": { "now_ms": 1_700, "source": "own_node" }, "held": { "since_ms": 900, "age_ms": 800 },
            "waiters": [{ "since_ms": 2_000, "age_ms": 0, "name": "age_ms" }], "end_ms": 1_500, "is_over": true,
            "payload": { "now_ms": 1 },
        });
        assert_eq!(report, expected);
    }
}
