//! The client: a cheap handle, its builder, its operations, and the task that owns its sessions.

mod aftermath;
mod builder;
mod children_of_all;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod client;
mod clock_check;
mod commit;
mod create;
mod delete_all;
mod delete_all_error;
mod ensure_absent;
mod ephemeral;
mod handle_debug;
mod health;
mod hooks;
mod in_time;
mod options;
mod options_env;
mod own_session;
mod shutdown;
mod shutdown_report;
mod spawn;
mod stopping;
mod supervisor;
mod thread;
mod told;
mod transaction;
mod view_lag;

pub use builder::ClientBuilder;
pub use children_of_all::children_of_all;
pub use client::Client;
pub use clock_check::{ClockCheck, server_time};
pub use delete_all_error::DeleteAllError;
pub use handle_debug::debug_handle;
pub use health::Health;
pub use hooks::Hooks;
pub use in_time::in_time;
pub use options::Options;
pub use own_session::is_own_session;
pub use shutdown_report::{ShutdownNode, ShutdownReport};
pub use spawn::spawn;
pub use stopping::stage_reached;
pub(crate) use transaction::Committed;
pub use transaction::{Transaction, TransactionResult};
pub use view_lag::ViewLag;
