//! Kept nodes: nodes that core keeps present, through link loss, new sessions and deletion by others.

mod armed;
mod builder;
mod desired;
mod exact;
mod life;
mod node;
mod reconcile;
mod sequential;
mod table;
mod table_entry;
mod told;
mod touch;
mod trouble;
mod wish;
mod witness;

pub use builder::KeptNodeBuilder;
pub use desired::KeptStatus;
pub(crate) use desired::{Desired, Farewell};
pub use node::KeptNode;
pub(crate) use table::{Drained, KeptTable, Progress, TaskEnd};
pub(crate) use witness::Witness;
