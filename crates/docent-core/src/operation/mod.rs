//! Operations of a client: attempts until there is an answer, in the current session.

mod attempts;
mod client_key;
mod coalesced_reads;
mod common;
mod in_operation;
mod notes;
mod shared;

pub(crate) use attempts::{Attempts, Idempotency, RequestFn, unexpected};
pub(crate) use client_key::ClientKey;
pub(crate) use coalesced_reads::CoalescedReads;
pub(crate) use common::Common;
pub use in_operation::InOperation;
pub(crate) use notes::SessionNotes;
pub(crate) use shared::{SessionTask, Shared};
