//! Requests of a client: the operations, their bodies, and their frames.

mod body;
mod create;
mod frame;
mod op_code;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod request;
mod watches;

pub use create::{Create, CreateKind};
pub use frame::{RequestFrame, xid};
pub use op_code::OpCode;
pub use request::Request;
pub use watches::{WatchKind, WatchMode, Watches};
