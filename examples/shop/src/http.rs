//! Requests and their answers.

use crate::caller::COPY;
use crate::orders::{self, Order, OrderError};
use crate::service::Shop;
use crate::stock::StockError;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::json;
use std::sync::Arc;

type Shared = State<Arc<Shop>>;

/// Returns all routes. Routes that do work are limited, so that probes are answered even under overload.
pub fn router(shop: Arc<Shop>) -> Router {
    let work = Router::new()
        .route("/stock/{item}", get(stock))
        .route("/orders/{id}", put(order))
        .layer(from_fn_with_state(Arc::clone(&shop), bounded));
    let probes = Router::new()
        .route("/livez", get(async || "alive"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics));
    work.merge(probes).with_state(shop)
}

/// Refuses a request immediately if it would have to wait.
async fn bounded(State(shop): Shared, request: Request, next: Next) -> Response {
    let mut response = match shop.places.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_) => refusal(StatusCode::TOO_MANY_REQUESTS, "too many requests"),
    };
    response.headers_mut().extend(HeaderValue::from_str(&shop.name).map(|name| (COPY, name)));
    response
}

async fn stock(State(shop): Shared, Path(item): Path<String>) -> Response {
    match shop.stock.level(&item).await {
        Ok(level) => Json(json!({ "item": item, "level": level, "copy": shop.name })).into_response(),
        Err(error) => failure(&error),
    }
}

async fn order(State(shop): Shared, Path(id): Path<String>, Json(order): Json<Order>) -> Response {
    let placed = orders::place(&shop, &id, &order).await;
    let outcome = if placed.is_ok() { "booked" } else { "refused" };
    metrics::counter!("shop_orders_total", "outcome" => outcome).increment(1);
    match placed {
        Ok(receipt) => (StatusCode::CREATED, Json(receipt)).into_response(),
        Err(error) => refused(&error),
    }
}

/// Maps an error to a response: 503 for errors that may not occur elsewhere or later, 4xx for all others.
fn refused(error: &OrderError) -> Response {
    let status = match error {
        OrderError::TooMany(_) => StatusCode::UNPROCESSABLE_ENTITY,
        OrderError::Stock(StockError::SoldOut) => StatusCode::CONFLICT,
        OrderError::Stock(error @ StockError::Database(_)) => return failure(error),
        OrderError::Acquire(_) | OrderError::Lost(_) | OrderError::Stock(StockError::Stale(_)) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    refusal(status, &error.to_string())
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

fn failure(error: &StockError) -> Response {
    tracing::error!(?error, "cannot answer");
    refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
}

/// Reports ready from the first request until the drain begins. An outage of the servers is reported but does
/// not change the status: a copy that can still answer should not be removed only because all copies are
/// affected.
async fn ready(State(shop): Shared) -> Response {
    let status = if shop.is_open() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(shop.readiness())).into_response()
}

async fn metrics(State(shop): Shared) -> String {
    shop.metrics.render()
}
