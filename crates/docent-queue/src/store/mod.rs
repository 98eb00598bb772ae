//! A queue without regard to what its items are: its items at the servers, and the items that this process
//! holds.

mod backlog;
mod folder;
mod items;
mod local;
mod local_claim;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod store;

pub(crate) use backlog::Backlog;
pub(crate) use folder::ensure_folder;
pub(crate) use items::{Items, children_ever};
pub(crate) use local::LocalItems;
pub(crate) use local_claim::LocalClaim;
pub(crate) use store::{Limits, Store};
