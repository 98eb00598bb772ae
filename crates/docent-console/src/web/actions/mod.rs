//! Actions: the only requests that change anything in ZooKeeper.

mod action;
mod apply;
mod forms;
mod target;

pub(super) use forms::{act, ask};
