//! The client: a cheap handle, its builder and settings, its operations, and the task that owns its sessions.

mod builder;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod client;
mod clock_check;
mod commit;
mod config;
mod create;
mod delete_all;
mod ensemble_tracker;
mod ephemeral;
mod granted_timeout;
mod health;
mod hooks;
mod many_reads;
mod operations;
mod options;
mod options_env;
mod outage_log;
mod parents;
mod proved_identity;
mod recipe;
mod shutdown;
mod state;
mod supervisor;
mod thread;
mod transaction;

pub use builder::ClientBuilder;
pub use client::Client;
pub use clock_check::{ClockCheck, server_time, time_of_day};
pub(crate) use commit::while_held;
pub(crate) use config::Config;
pub use config::{ParentKind, RollbackPolicy};
pub use create::ensure_node;
pub use delete_all::DeleteAllError;
pub use health::Health;
pub use hooks::{Hooks, ViewLag};
pub use many_reads::{children_of_all, get_all};
pub use options::Options;
pub(crate) use parents::{
    PARENT_ROUNDS, create_parents, create_parents_below, create_parents_by, create_parents_in, refused_parent,
};
pub use proved_identity::ProvedIdentity;
pub(crate) use recipe::{Recipe, Stages, refuse_reserved};
pub use recipe::{
    RecipeKind, Stage, debug_handle, full_error, full_path, in_time, is_own_session, spawn, stage_reached,
    transport,
};
pub use shutdown::{ShutdownNode, ShutdownReport};
pub use state::{ConnectionState, ConnectionStatus, StateWatcher};
pub(crate) use transaction::Committed;
pub use transaction::{Transaction, TransactionResult};
