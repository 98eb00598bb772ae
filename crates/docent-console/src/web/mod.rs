//! Routes: pages, events, actions, metrics and the API.

mod actions;
mod answer;
mod api;
mod assets;
mod events;
mod metrics;
mod reads;
mod routes;

pub(crate) use api::LastWalk;
pub(crate) use routes::router;
