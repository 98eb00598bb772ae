//! Writes whose outcome is certain, and deletes that must happen: of released tickets, and of nodes whose
//! create was dropped or lost its reply.
//!
//! While a session lives, each of its unanswered writes may still be applied at any later time: a partitioned
//! server may forward it long after the client has connected to another server. An exact write solves this
//! with a marker, a node of the session that the write also sets:
//!
//! - The write is applied at most once, because the marker has the expected version only once.
//! - The write can be fenced out, because after another change of the marker it can never be applied.
//!
//! Therefore the outcome of a write whose reply was lost can always be determined while the session lives.
//! See decisions 5 and 11.
//!
//! `Drop` submits a delete in order with other calls and hands the rest to the client's single worker. The
//! worker retries until the node is deleted, or until the servers confirm the end of the session that owned
//! it.

mod by_czxid;
mod by_name;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod cleanup;
mod exact_write;
mod lost_creates;
mod marker;
mod own_folder;
mod own_node;
mod owned_node;

use crate::session::context::PAUSE;
pub(crate) use by_name::{children, find};
pub(crate) use cleanup::Cleanup;
pub(crate) use exact_write::{CreatedNodes, ExactWrite, WriteOutcome, numbered};
pub(crate) use lost_creates::LostCreates;
pub(crate) use marker::{Marker, Markers, leave};
pub(crate) use own_folder::{Near, OwnFolder};
pub(crate) use own_node::{NoOwnNode, create_own_node};
pub(crate) use owned_node::{DeleteOutcome, Deletion, NewClaim, OwnedNode};
