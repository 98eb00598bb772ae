//! The asynchronous part around [`State`](crate::state::State): the links and their tasks, the ensemble that
//! serves them, and the hub that holds the ensemble under one lock.

mod answer;
mod budget;
mod buffers;
mod count;
mod ensemble;
mod entrance;
mod faults;
mod follow;
mod hub;
mod lane;
mod link;
mod links;
mod listener;
mod locked;
mod members;
mod membership;
mod pipe;
mod pressure;
mod room;
mod serve;
mod shape;
mod shaped;
mod tcp;
mod traffic;
mod valve;
mod words;

#[cfg(test)]
mod tests;

pub use listener::{Bind, Listener};
pub use tcp::{Listening, TcpBind};

pub(crate) use entrance::Entrance;
pub(crate) use faults::Unanswered;
pub(crate) use follow::{Follow, follow};
pub(crate) use hub::Hub;
pub(crate) use members::{LEADER, MemberId};
pub(crate) use membership::Membership;
pub(crate) use serve::{Command, Serve, serve};
pub(crate) use shape::SharedShape;
