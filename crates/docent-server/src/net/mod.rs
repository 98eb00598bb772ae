//! The tokio shell around [`State`](crate::state::State): links, the hub they share, and the tasks that run them.

mod clock;
mod hub;
mod link;
mod listener;
mod serve;
mod words;

#[cfg(test)]
mod tests;

pub use listener::{Bind, Listener, TcpBind};

pub(crate) use hub::Hub;
pub(crate) use serve::{Command, Serve, serve};
