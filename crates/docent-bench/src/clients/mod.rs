//! The compared clients, behind the operations that are measured.

mod bare;
mod client;
mod docent;
mod peer;
mod which;

pub(crate) use bare::Bare;
pub(crate) use client::Client;
pub(crate) use docent::Docent;
pub(crate) use peer::ZookeeperClient;
pub(crate) use which::Which;
