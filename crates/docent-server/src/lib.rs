#![doc = include_str!("../README.md")]

mod builder;
mod config;
mod error;
mod info;
mod journal;
mod limits;
mod net;
mod server;
mod state;

pub use builder::Builder;
pub use error::StartError;
pub use info::{NodeInfo, SessionInfo};
pub use journal::{Transaction, TransactionKind};
pub use limits::Limits;
pub use net::{Bind, Listener, TcpBind};
pub use server::Server;
