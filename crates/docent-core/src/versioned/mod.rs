//! A value in a dedicated node, written exactly: the common basis of configuration, shared values and
//! counters.

mod cas_loop;
mod create_or_set;
mod curator;
mod ensure_path;
mod node;

pub use cas_loop::CasLoop;
pub use create_or_set::CreatedOrSet;
pub use curator::{decode_count, is_revocation};
use node::CommitOutcome;
pub use node::VersionedNode;
