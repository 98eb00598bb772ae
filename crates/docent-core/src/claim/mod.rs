//! Claims: ephemeral nodes at fixed names, of which one exists at a time. Other clients reuse the name.
//! Therefore a claim that is handed out has a second node with a unique name, which the servers check
//! (decision 28).

mod claim_all;
mod hand_out;
mod request;
mod rivals;

pub use claim_all::{ClaimResult, claim_all};
pub use hand_out::hand_out;
pub use request::{ClaimRequest, proofs_below};
