//! Kept nodes: ephemeral nodes that core keeps present, through link loss, new sessions and deletion by
//! others.

mod entered;
mod exact;
mod node;
mod reconcile;
mod trouble;
mod witness;

pub use node::KeptNode;
