//! Sessions with all of their nodes, which need a walk of the tree.

use super::answer::{busy, failure, page, status};
use super::api::{self, BUSY};
use super::routes::Shared;
use crate::access::Visitor;
use crate::console::Inner;
use crate::pages::{Filter, sessions_page};
use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use docent::Error;
use docent::inspect::SessionReport;
use http::StatusCode;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Time for which the sessions are kept, so that many requests cost one walk.
const KEPT: Duration = Duration::from_secs(5);

type Sessions = Result<Arc<[SessionReport]>, Error>;

/// The sessions that the last walk found. Requests that come during a walk wait for it.
#[derive(Debug, Default)]
pub(crate) struct LastWalk(Mutex<Option<(Instant, Sessions)>>);

impl LastWalk {
    /// Returns the sessions, or `None` if too many requests wait for ZooKeeper.
    async fn sessions(&self, inner: &Inner) -> Option<Sessions> {
        let mut last = self.0.lock().await;
        if let Some((_, sessions)) = last.as_ref().filter(|(at, _)| at.elapsed() < KEPT) {
            return Some(sessions.clone());
        }
        let _permit = inner.read_permit().await?;
        let sessions = inner.inspector.walk(&inner.settings.root).await.map(|survey| {
            let mut sessions = survey.sessions();
            if !inner.pen().shows_data {
                // Without Docent's form, it may be the data of a member.
                let others = sessions.iter_mut().filter(|session| session.client.is_none());
                others.for_each(|session| session.identity = None);
            }
            Arc::from(sessions)
        });
        Some(last.insert((Instant::now(), sessions)).1.clone())
    }
}

/// Sessions with what they own, as JSON.
pub(super) async fn answer(State(inner): Shared) -> Response {
    match inner.sessions.sessions(&inner).await {
        Some(Ok(sessions)) => {
            Json(json!({ "root": inner.settings.root, "sessions": &sessions[..] })).into_response()
        }
        Some(Err(failed)) => api::error(status(&failed), &failed.to_string()),
        None => api::error(StatusCode::SERVICE_UNAVAILABLE, BUSY),
    }
}

/// Sessions with all of their nodes, as they were when the page was loaded.
pub(super) async fn all(State(inner): Shared, visitor: Visitor, Query(filter): Query<Filter>) -> Response {
    match inner.sessions.sessions(&inner).await {
        Some(Ok(sessions)) => {
            page(&inner, &visitor, StatusCode::OK, &sessions_page(&sessions, &filter, &inner.pen()))
        }
        Some(Err(failed)) => failure(&inner, &visitor, &failed),
        None => busy(&inner, &visitor),
    }
}
