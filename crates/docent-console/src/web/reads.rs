use super::answer::{busy, failure, framed, page, say};
use super::routes::Shared;
use crate::access::Visitor;
use crate::console::Inner;
use crate::pages::{View, data_page, diff_page, missing_node, node_page};
use axum::extract::{Query, State};
use axum::response::Response;
use docent::config::{Config, Raw};
use docent::{Error, ErrorKind};
use http::StatusCode;
use maud::html;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct Wanted {
    path: String,
}

#[derive(Deserialize)]
pub(super) struct WantedDiff {
    path: String,
    /// Transaction that wrote the earlier value.
    from: i64,
}

/// The node at a path and its children, also if the path is a recipe.
pub(super) async fn nodes(State(inner): Shared, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    node(&inner, &visitor, &wanted.path, None).await
}

/// The node at a path and its children. If there is a view, its events report when a recipe appears.
pub(super) async fn node(inner: &Arc<Inner>, visitor: &Visitor, path: &str, view: Option<&View>) -> Response {
    if !inner.is_below_root(path) {
        return outside(inner, visitor, path);
    }
    let Some(_permit) = inner.read_permit().await else { return busy(inner, visitor) };
    match inner.client.children(path).await {
        Ok(children) => {
            let drawn = node_page(path, &children.stat, &children, &inner.pen());
            framed(inner, visitor, StatusCode::OK, &drawn, view)
        }
        Err(error) if error.kind() == ErrorKind::NoNode && view.is_some() => {
            let drawn = missing_node(path);
            framed(inner, visitor, StatusCode::NOT_FOUND, &drawn, view)
        }
        Err(error) => failure(inner, visitor, &error),
    }
}

/// The data of a node.
pub(super) async fn data(State(inner): Shared, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    if let Some(refusal) = refusal(&inner, &visitor, &wanted.path) {
        return refusal;
    }
    let Some(_permit) = inner.read_permit().await else { return busy(&inner, &visitor) };
    match inner.client.get(&wanted.path).await {
        Ok(node) => page(&inner, &visitor, StatusCode::OK, &data_page(&wanted.path, &node, &inner.pen())),
        Err(error) => failure(&inner, &visitor, &error),
    }
}

/// The difference between an earlier value of a configuration and the current one.
pub(super) async fn diff(
    State(inner): Shared,
    visitor: Visitor,
    Query(wanted): Query<WantedDiff>,
) -> Response {
    let path = &wanted.path;
    if let Some(refusal) = refusal(&inner, &visitor, path) {
        return refusal;
    }
    let Some(_permit) = inner.read_permit().await else { return busy(&inner, &visitor) };
    match values(&inner, path, wanted.from).await {
        Ok(Some((versions, old, new))) => {
            page(&inner, &visitor, StatusCode::OK, &diff_page(path, versions, &old, &new, &inner.pen()))
        }
        Ok(None) => {
            let text = html! { p { "The history of this configuration does not have that value any more." } };
            say(&inner, &visitor, StatusCode::NOT_FOUND, "No such value", &text)
        }
        Err(error) => failure(&inner, &visitor, &error),
    }
}

type Values = ((i32, i32), bytes::Bytes, bytes::Bytes);

/// Returns the versions and the data of an earlier value and of the current one.
async fn values(inner: &Inner, path: &str, mzxid: i64) -> Result<Option<Values>, Error> {
    let config = Config::<bytes::Bytes>::builder_with(&inner.client, path, Raw).build()?;
    let history = config.history().await?;
    let earlier = history.into_iter().find(|entry| entry.revision.mzxid == mzxid);
    let Some((version, old)) = earlier.and_then(|entry| Some((entry.revision.version, entry.value.ok()?)))
    else {
        return Ok(None);
    };
    let node = inner.client.get(path).await?;
    Ok(Some(((version, node.stat.version), old, node.data)))
}

/// Returns the answer to a request for data that may not be shown.
fn refusal(inner: &Inner, visitor: &Visitor, path: &str) -> Option<Response> {
    if !inner.pen().shows_data {
        let text = html! { p { "This console was started without data." } };
        return Some(say(inner, visitor, StatusCode::FORBIDDEN, "Data is not shown", &text));
    }
    (!inner.is_below_root(path)).then(|| outside(inner, visitor, path))
}

pub(super) fn outside(inner: &Inner, visitor: &Visitor, path: &str) -> Response {
    let text = html! { p { code { (docent::inspect::printable(path)) } " is not below " code { (inner.settings.root) } ", which this console shows." } };
    say(inner, visitor, StatusCode::FORBIDDEN, "Not below the root", &text)
}
