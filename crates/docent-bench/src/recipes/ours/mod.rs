//! The workloads of Docent, written as its users would write them, in a separate process, and the workloads
//! of bare sockets.

mod bare;
mod config;
mod crowd;
mod discovery;
mod election;
mod locks;
mod memory;
mod queues;
mod series;
mod worker;

pub(crate) use worker::run;
