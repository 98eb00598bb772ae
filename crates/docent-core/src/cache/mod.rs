//! A node, the children of a node, or a whole tree, kept in memory: read without I/O, updated in the
//! background.
//!
//! Each cache has one task, which uses one-shot watches that it re-arms, or one persistent watch. Caches and
//! streams of one client that follow the same node share one watch at the server.

mod attachment;
mod children;
mod children_store;
mod folder;
mod keys;
mod node;
mod node_task;
mod nodes;
mod reads;
mod shared_node;
mod snapshot;
mod status;
mod subscriber;
mod subtree_events;
mod sync_pace;
mod task;
mod tree;

pub use children::{ChildrenCache, ChildrenEvent, ChildrenEvents};
pub use node::{NodeCache, NodeChanges};
pub use shared_node::SharedNode;
pub use snapshot::ChildrenSnapshot;
pub use subtree_events::{SubtreeEvent, SubtreeEvents};
pub use tree::{TreeCache, TreeCacheBuilder, TreeEvent, TreeEvents, TreeSnapshot};
