use super::answer::{framed, say};
use super::{actions, api, assets, events, metrics, reads, sessions};
use crate::access::Visitor;
use crate::console::{Console, Inner};
use crate::pages::{Filter, Pen, View, at, draw, path_segments};
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::StatusCode;
use maud::html;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;

pub(super) type Shared = State<Arc<Inner>>;

/// Returns the routes, without the checks of who may use them.
pub(crate) fn router(console: &Console) -> Router {
    Router::new()
        .route("/nodes", get(reads::nodes))
        .route("/data", get(reads::data))
        .route("/diff", get(reads::diff))
        .route("/search", get(search))
        .route("/act", get(actions::ask).post(actions::act))
        .route("/api/v1/at", get(api::at))
        .route("/api/v1/at/", get(api::at))
        .route("/api/v1/at/{*path}", get(api::at))
        .route("/api/v1/sessions", get(sessions::answer))
        .route("/sessions/nodes", get(sessions::all))
        .route("/at", get(recipe))
        .route("/at/", get(recipe))
        .route("/at/{*path}", get(recipe))
        .route("/", get(live))
        .route("/locks", get(live))
        .route("/elections", get(live))
        .route("/services", get(live))
        .route("/queues", get(live))
        .route("/config", get(live))
        .route("/members", get(live))
        .route("/sessions", get(live))
        .route("/tree", get(live))
        .route("/events", get(events::stream))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/ensemble", get(api::ensemble))
        .route("/api/v1/recipes", get(api::recipes))
        .route("/api/v1/schema.json", get(api::schema))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(metrics::ready))
        .route("/assets/console.css", get(assets::style))
        .route("/assets/console.js", get(assets::script))
        .route("/assets/icon.svg", get(assets::icon))
        .fallback(missing)
        .with_state(Arc::clone(&console.inner))
}

/// A page that the events of its view keep up to date.
async fn live(
    State(inner): Shared,
    visitor: Visitor,
    Query(filter): Query<Filter>,
    request: Request,
) -> Response {
    match View::of(request.uri().path(), filter) {
        Some(view) => live_page(&inner, &visitor, &view),
        None => missing(State(inner), request).await,
    }
}

fn live_page(inner: &Arc<Inner>, visitor: &Visitor, view: &View) -> Response {
    let drawn = draw(&inner.world, &inner.client, view, &inner.pen());
    framed(inner, visitor, StatusCode::OK, &drawn, Some(view))
}

/// The page about one path: its recipe, or the node as it is now until it is a recipe.
async fn recipe(
    State(inner): Shared,
    visitor: Visitor,
    Query(filter): Query<Filter>,
    request: Request,
) -> Response {
    let rest = request.uri().path().strip_prefix("/at").unwrap_or_default();
    let Some(path) = path_segments(rest.trim_start_matches('/')) else {
        return missing(State(inner), request).await;
    };
    let is_recipe = inner.world.report(&path).is_some();
    let view = View::At(path.clone(), filter);
    match is_recipe {
        true => live_page(&inner, &visitor, &view),
        false => reads::node(&inner, &visitor, &path, Some(&view)).await,
    }
}

#[derive(serde::Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    q: String,
}

/// Leads to a path, or to the recipes in whose paths or owners the text is.
async fn search(State(inner): Shared, Query(search): Query<Search>) -> Redirect {
    let Pen { base, .. } = inner.pen();
    let q = search.q.trim();
    let is_recipe = inner.world.report(q).is_some();
    let is_node = q.starts_with('/') && inner.is_below_root(q);
    let exists = async || {
        let Some(_permit) = inner.read_permit().await else { return false };
        matches!(inner.client.exists(q).await, Ok(Some(_)))
    };
    let is_path = is_recipe || is_node && exists().await;
    match is_path {
        true => Redirect::to(&format!("{base}{}", at(q))),
        false => Redirect::to(&format!("{base}/tree?q={}", utf8_percent_encode(q, NON_ALPHANUMERIC))),
    }
}

async fn missing(State(inner): Shared, request: Request) -> Response {
    let Some(visitor) = request.extensions().get::<Visitor>() else {
        return (StatusCode::NOT_FOUND, "no such page\n").into_response();
    };
    let text = html! { p { "The console has no page at " code { (request.uri().path()) } "." } };
    say(&inner, visitor, StatusCode::NOT_FOUND, "No such page", &text)
}
