//! A live view of the instances of one service.

mod builder;
mod change;
mod instances;
mod task;
#[cfg(feature = "tonic")]
mod tonic;
#[cfg(feature = "tower")]
mod tower;
mod unreadable;
mod view;

pub use builder::ServiceBuilder;
#[cfg(any(feature = "tonic", feature = "tower"))]
use change::KeyedChanges;
pub use change::{ServiceChange, ServiceChanges};
pub use instances::Instances;
#[cfg(feature = "tower")]
pub use tower::Discovered;
pub use unreadable::Unreadable;
pub use view::Service;
