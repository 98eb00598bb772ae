//! Claims: ephemeral nodes at fixed names, of which there is one at a time. What others may use again is never deleted by its name
//! alone, so that a claim is undone in its own session only, and only while it is the same node.

mod drawing;
mod guard;

pub use drawing::{Claimed, Wanted};
pub use guard::Claim;
