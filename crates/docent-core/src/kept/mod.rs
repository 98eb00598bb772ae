//! Kept nodes: nodes that core keeps present, through link loss, new sessions and deletion by others.

mod armed;
mod builder;
mod exact;
mod life;
mod node;
mod reconcile;
mod sequential;
mod table_entry;
mod told;
mod touch;
mod trouble;
mod wish;
mod witness;

pub use builder::KeptNodeBuilder;
pub use node::KeptNode;
