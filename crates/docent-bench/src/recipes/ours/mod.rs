//! The workloads of Docent, written as its users would write them, in a process of their own; and those of
//! bare sockets.

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
