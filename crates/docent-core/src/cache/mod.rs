//! A node, or the children of a node, kept in memory: read without I/O, brought up to date in the background.
//!
//! One task for each cache, over one-shot watches that are set again. Caches and streams of one client that
//! look at the same node share one watch at the server. There is no cache of a whole tree, and persistent
//! recursive watches are not used.

mod attachment;
mod children;
mod children_event;
mod children_store;
mod children_task;
mod node;
mod node_task;
mod read_queue;
mod snapshot;
mod status;
mod subscriber;

pub use children::ChildrenCache;
pub use children_event::{ChildrenEvent, ChildrenEvents};
pub use node::{NodeCache, NodeChanges};
pub use snapshot::ChildrenSnapshot;
