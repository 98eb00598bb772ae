//! Routes: pages, events, actions, metrics and the API.

mod actions;
mod answer;
mod api;
mod assets;
mod events;
mod metrics;
mod reads;
mod routes;
mod sessions;

pub(crate) use routes::router;
pub(crate) use sessions::LastWalk;
