//! A value in a dedicated node, written exactly: the common basis of configuration, shared values and
//! counters.

mod create_or_set;
mod node;

pub use create_or_set::CreatedOrSet;
use node::CommitOutcome;
pub use node::{CasLoop, VersionedNode, decode_count, is_revocation};
