//! A live view of the instances of one service.

mod builder;
mod change;
mod instances;
mod task;
mod unreadable;
mod view;

pub use builder::ServiceBuilder;
#[cfg(any(feature = "tonic", feature = "tower"))]
pub(crate) use change::KeyedChanges;
pub use change::{ServiceChange, ServiceChanges};
pub use instances::Instances;
pub use unreadable::Unreadable;
pub use view::Service;
