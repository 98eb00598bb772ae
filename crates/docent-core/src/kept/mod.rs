//! Kept nodes: ephemeral nodes that core keeps present, through link loss, new sessions and deletion by
//! others.

mod exact;
mod node;
mod reconcile;
mod table_entry;
mod trouble;
mod witness;

pub use node::KeptNode;
