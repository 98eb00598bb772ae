//! A value in a node of its own, written exactly: what configuration, shared values and counters have in
//! common.

mod cas_loop;
mod create_or_set;
mod curator;
mod ensure_path;
mod node;

pub use cas_loop::CasLoop;
pub use create_or_set::CreatedOrSet;
pub use curator::{decode_count, is_revocation};
use node::Ended;
pub use node::VersionedNode;
