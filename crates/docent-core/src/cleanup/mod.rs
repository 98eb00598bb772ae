//! Deletes that must happen: of released tickets, and of nodes whose create was dropped or had its reply
//! lost.
//!
//! `Drop` submits the delete in order with other calls and hands the rest to the one worker of the client.
//! The worker tries until the node is gone, or until the session that owned it is gone by the servers' word.

mod claim;
mod claim_node;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod cleanup;
mod doomed;
mod job;
mod leaving;
mod lost_creates;
mod own;
mod undo;
mod worker;

pub(crate) use claim_node::ClaimNode;
pub(crate) use cleanup::Cleanup;
use job::Job;
pub(crate) use leaving::{Leaving, Left};
pub(crate) use lost_creates::LostCreates;
pub(crate) use own::generation_find;
pub(crate) use undo::{Made, numbered};
