//! A value in a node of its own, written exactly: what configuration, shared values and counters have in
//! common.

mod cas_loop;
mod curator;
mod node;

pub use cas_loop::CasLoop;
pub use curator::decode_count;
pub use node::VersionedNode;
