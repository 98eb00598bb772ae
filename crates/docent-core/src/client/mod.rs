//! The client: a cheap handle, its builder, and what its handles share with its tasks.

mod aftermath;
mod builder;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod client;
mod clock_check;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod generation;
mod health;
mod spawn;
pub(crate) mod state;
mod supervisor;
mod thread;

pub use builder::ClientBuilder;
pub use client::Client;
pub use clock_check::ClockCheck;
pub use config::{ParentKind, RollbackPolicy};
pub use health::Health;
pub use spawn::spawn;
pub use state::{ConnectionState, ConnectionStatus, StateWatcher};
