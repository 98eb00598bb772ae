//! Claims: ephemeral nodes at fixed names, of which there is one at a time. Others may use the name again, so
//! that a claim is never deleted by its name alone, but in its own session only, and only while it is the
//! same node (decision 8).

mod claim_all;
mod reads;

pub use claim_all::{ClaimRequest, ClaimResult, claim_all};
