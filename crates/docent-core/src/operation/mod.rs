//! Operations of a client: attempts until there is an answer, in the current session.

mod attempts;
mod common;
mod notes;
mod shared;

pub use attempts::InOperation;
pub(crate) use attempts::{Attempts, Idempotency, RequestFn, unexpected};
pub(crate) use common::{ClientKey, CoalescedReads, Common};
pub(crate) use notes::SessionNotes;
pub(crate) use shared::{SessionTask, Shared};
