//! Operations of a client: attempts until there is an answer, in the session that there is.

mod attempts;
mod client_key;
mod common;
mod glances;
mod notes;
mod shared;

pub(crate) use attempts::{Attempts, Idempotency, Make, unexpected};
pub(crate) use client_key::ClientKey;
pub(crate) use common::Common;
pub(crate) use glances::Glances;
pub(crate) use notes::SessionNotes;
pub(crate) use shared::{SessionTask, Shared};
