//! Kept nodes: nodes that core keeps present despite lost links, new sessions and deletion by other clients.

mod armed;
mod choice;
mod desired;
mod node;
mod reconcile;
mod sequential;
mod status_log;
mod table;
mod target;
mod witness;

pub use choice::{ReadChoice, Shown};
pub(crate) use desired::{Desired, FinalData};
pub use desired::{KeptStatus, Preparation};
pub use node::{KeptNode, KeptNodeBuilder};
pub(crate) use table::{Drained, KeptTable, Progress, TaskChannels};
pub(crate) use witness::Witness;
