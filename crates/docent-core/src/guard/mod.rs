//! Guards: when one begins, how it is kept, and when it is lost.
//!
//! A guard is lost when its lease has run out by the clock, its node was deleted, its session has ended, or
//! its client was closed; `HoldTable` has the guards of a session, and `heartbeat` the heartbeat that renews
//! their lease and finds out what became of their nodes.

mod fence;
mod generation;
pub(crate) mod heartbeat;
mod hold_state;
mod lost;
mod role;

pub use fence::{Fence, ParseFenceError};
pub(crate) use generation::SessionGeneration;
pub(crate) use hold_state::{HoldState, HoldTable, REVOKE};
pub use lost::{Lost, LostReason};
pub use role::Role;
