//! Workloads of the clients. The workload of a recipe is one file or folder here, and one row in `recipes`.

mod abandon;
mod acquire_mode;
mod barrier;
mod calls;
mod client_ctx;
mod config;
mod contract;
mod discovery;
mod election;
mod follower_record;
mod hold;
mod multilock;
mod mutex;
mod pace;
mod queue;
mod recipes;
mod record;
mod rwlock;
mod semaphore;
mod streams;
mod tree;

pub(crate) use calls::PLAIN;
pub(crate) use client_ctx::{ClientCtx, Denied};
pub(crate) use contract::Workload;
#[cfg(docent_planted)]
pub(crate) use recipes::shows;
pub(crate) use recipes::{by_name, names, of_defect};
