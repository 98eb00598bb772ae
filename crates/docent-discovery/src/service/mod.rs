//! A live view of the instances of one service.

mod builder;
mod change;
mod follower;
mod instances;
mod task;
#[cfg(feature = "tower")]
mod tower;
mod view;

pub use builder::ServiceBuilder;
#[cfg(feature = "tower")]
use change::KeyedChanges;
pub use change::{ServiceChange, ServiceChanges};
#[cfg(feature = "tower")]
pub(crate) use follower::Follower;
pub use instances::{Instances, Unreadable};
#[cfg(feature = "tower")]
pub use tower::Discovered;
pub use view::Service;
