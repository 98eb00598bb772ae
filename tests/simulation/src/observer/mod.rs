//! Clients that watch with bare requests, in addition to those of the workload.

mod host;
mod link;
mod own_nodes;
mod routine;
mod session;

pub(crate) use host::Observers;
