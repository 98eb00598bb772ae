//! Settings of a client, its state that outlives its sessions, and the parents of its nodes.

mod config;
mod multi_read_support;
mod parents;
mod recipe;
mod recipe_kind;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod setup;
mod stage;
mod state;

pub(crate) use config::Config;
pub use config::{ParentKind, RollbackPolicy};
pub(crate) use multi_read_support::MultiReadSupport;
pub(crate) use parents::{
    PARENT_ROUNDS, create_parents, create_parents_by, create_parents_in, refused_parent,
};
pub(crate) use recipe::Recipe;
pub use recipe_kind::RecipeKind;
pub(crate) use setup::Setup;
pub use stage::Stage;
pub(crate) use stage::Stages;
pub use state::{ConnectionState, ConnectionStatus, StateWatcher};
