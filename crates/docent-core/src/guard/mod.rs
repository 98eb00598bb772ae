//! Guards: when a guard begins, how it is kept, and when it is lost.
//!
//! `SessionGeneration::hold` begins a guard while the session's lease runs. `HoldState::mark_lost` is the
//! only end that counts as a loss. It is called by:
//!
//! - `HoldState::check` and `HoldState::lost`, by the clock: the lease has run out;
//! - `heartbeat`, which renews the lease: its check, or the watch on the guard's node, finds the node
//!   deleted;
//! - `SessionGeneration::end` and `SessionGeneration::add`: the session has ended, or the client was closed;
//! - `HoldState::confirm`: after a lost link, another node exists at the path;
//! - `HoldState::mark_lost` itself: the hold that lent this one, or that this one lent, is lost;
//! - outside of this folder, the operations that ask a quorum about the node: `verify`, transactions and
//!   `downgrade`.

mod fence;
mod generation;
pub(crate) mod heartbeat;
mod hold_state;
mod lost;
mod released;

pub use fence::{Fence, ParseFenceError};
pub(crate) use generation::{SessionGeneration, UnderWay};
pub(crate) use hold_state::{Beginning, HoldState, REVOKE};
pub use lost::{Lost, LostReason};
pub use released::Released;
