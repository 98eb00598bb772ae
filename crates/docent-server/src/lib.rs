#![doc = include_str!("../README.md")]

mod builder;
mod config;
mod error;
mod follower;
mod follower_builder;
mod info;
mod journal;
mod limits;
mod net;
mod server;
mod state;

pub use builder::Builder;
pub use error::StartError;
pub use follower::Follower;
pub use follower_builder::FollowerBuilder;
pub use info::{NodeInfo, SessionInfo};
pub use journal::{EndCause, Transaction, TransactionKind};
pub use limits::Limits;
pub use net::{Bind, Listener, Listening, TcpBind};
pub use server::Server;
