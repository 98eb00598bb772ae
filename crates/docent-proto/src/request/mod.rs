//! Requests of a client: the operations, their bodies, and their frames.

mod body;
mod frame;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod request;

pub use body::{Create, CreateKind, WatchKind, WatchMode, Watches};
pub use frame::{RequestFrame, xid};
pub use request::{OpCode, Request};
