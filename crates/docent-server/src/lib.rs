#![doc = include_str!("../README.md")]

#[macro_use]
mod macros;

#[cfg(feature = "cli")]
pub mod cli;
mod config;
mod dialect;
mod error;
mod fault;
mod files;
mod info;
mod journal;
mod keep;
mod limits;
mod log;
mod net;
#[cfg(docent_planted)]
#[doc(hidden)]
pub mod planted;
mod server;
mod state;
mod time;

pub use dialect::{Dialect, UnknownDialect};
pub use error::StartError;
pub use fault::{Armed, Operation};
pub use info::{NodeInfo, SessionInfo};
pub use journal::{EndCause, Transaction, TransactionKind};
pub use keep::{KeepError, KeepFault};
pub use limits::Limits;
pub use net::{Bind, Listener, Listening, TcpBind};
pub use server::{Builder, Follower, FollowerBuilder, Link, Server};
