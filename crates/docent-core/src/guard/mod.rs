//! Guards: when one begins, how it is kept, and when it is lost.
//!
//! A guard is lost when its lease has run out by the clock, its node was deleted, its session has ended, or
//! its client was closed; `HeldTable` has the guards of a session, and `keeper` the heartbeat that renews
//! their lease and finds out what became of their nodes.

mod fence;
mod held;
pub(crate) mod keeper;
mod lost;
mod release;
mod run_while;
mod verify;

pub use fence::{Fence, ParseFenceError};
pub(crate) use held::{Held, HeldTable, REVOKE};
pub use lost::{Lost, LostReason};
pub(crate) use release::gone;
pub(crate) use run_while::run_while;
pub(crate) use verify::verify;
