//! Desired state of a client's kept nodes, as their handles and their tasks share it.

#[expect(clippy::module_inception, reason = "the folder is about it")]
mod desired;
mod table;
mod witness;

pub use desired::KeptStatus;
pub(crate) use desired::{Desired, Farewell};
pub(crate) use table::{Drained, KeptTable, Progress, TaskEnd};
pub(crate) use witness::Witness;
