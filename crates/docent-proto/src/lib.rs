#![doc = include_str!("../README.md")]

mod acl;
mod code;
mod connect;
pub mod digest_md5;
mod error;
mod event;
mod frame;
mod mode;
mod multi;
mod path;
mod request;
mod response;
mod stat;
mod text;
mod wire;

pub use acl::{Acl, Permissions};
pub use code::Code;
pub use connect::{ConnectRequest, ConnectResponse};
pub use error::DecodeError;
pub use event::{EventKind, WatchEvent};
pub use frame::{Frames, write_frame};
pub use mode::CreateMode;
pub use multi::{MultiOp, MultiResult};
pub use path::{InvalidPath, parent, validate_path};
pub use request::{Create, CreateKind, OpCode, Request, RequestFrame, WatchKind, WatchMode, Watches, xid};
pub use response::{ClientInfo, ReplyHeader, Response};
pub use stat::Stat;
pub use text::text_of;
pub use wire::{Reader, Record};
