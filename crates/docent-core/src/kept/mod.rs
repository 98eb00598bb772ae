//! Kept nodes: ephemeral nodes that core keeps present, through link loss, new sessions and deletion by
//! others.

mod desired;
mod exact;
mod node;
mod reconcile;
mod table;
mod trouble;
mod witness;

pub use desired::KeptStatus;
pub use node::KeptNode;
pub(crate) use table::KeptTable;
pub(crate) use witness::Witness;
