//! Writes whose outcome is certain, and deletes that must happen: of released tickets, and of nodes whose
//! create was dropped or had its reply lost.
//!
//! While a session lives, each of its unanswered writes may be applied at any later time: a server that was
//! cut off may pass it on long after the client has gone elsewhere. An exact write is applied at most once,
//! because it also sets a marker of ours, which has the version that it asks for only once; and it can be
//! fenced out, because a marker that was moved on refuses it for good. So the outcome of a write whose reply
//! was lost is always found out while the session lives. See decisions 5 and 11.
//!
//! `Drop` submits a delete in order with other calls and hands the rest to the one worker of the client. The
//! worker tries until the node is gone, or until the session that owned it is gone by the servers' word.

mod by_claim;
mod by_czxid;
mod by_name;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod cleanup;
mod deletion;
mod exact_write;
mod job;
mod lost_creates;
mod marker;
mod markers;
mod own_folder;
mod own_node;
mod owned_node;
mod undo;
mod worker;

use crate::session::ask::PAUSE;
pub(crate) use by_name::{children, find};
pub(crate) use cleanup::Cleanup;
pub(crate) use deletion::{DeleteOutcome, Deletion};
pub(crate) use exact_write::{Ended, ExactWrite};
use job::Job;
pub(crate) use lost_creates::LostCreates;
pub(crate) use marker::Marker;
pub(crate) use markers::{Markers, leave};
pub(crate) use own_folder::{Near, OwnFolder};
pub(crate) use own_node::{NoOwnNode, create_own_node};
pub(crate) use owned_node::{ClaimVersions, NewClaim, OwnedNode};
pub(crate) use undo::{Made, numbered};
