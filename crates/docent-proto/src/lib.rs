#![doc = include_str!("../README.md")]

mod code;
mod connect;
pub mod digest_md5;
mod error;
mod multi;
mod node;
mod path;
mod request;
mod response;
mod text;
mod wire;

pub use code::Code;
pub use connect::{ConnectRequest, ConnectResponse};
pub use error::DecodeError;
pub use multi::{MultiOp, MultiResult};
pub use node::{Acl, CreateMode, Permissions, Stat};
pub use path::{InvalidPath, parent, validate_path};
pub use request::{Create, CreateKind, OpCode, Request, RequestFrame, WatchKind, WatchMode, Watches, xid};
pub use response::{ClientInfo, EventKind, ReplyHeader, Response, WatchEvent};
pub use text::text_of;
pub use wire::{Frames, Reader, Record, write_frame};
