//! The tokio shell around [`State`](crate::state::State): links, the hub they share, and the tasks that run
//! them.

mod answer;
mod entrance;
mod follow;
mod hub;
mod link;
mod listener;
mod member;
mod pipe;
mod serve;
mod tcp;
mod words;

#[cfg(test)]
mod tests;

pub use listener::{Bind, Listener};
pub use tcp::{Listening, TcpBind};

pub(crate) use entrance::Entrance;
pub(crate) use follow::{Follow, follow};
pub(crate) use hub::Hub;
pub(crate) use member::{LEADER, MemberId, Membership};
pub(crate) use serve::{Command, Serve, serve};
