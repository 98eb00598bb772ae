//! Readers of a value that report which revision they have applied.

mod readers;
mod running;

pub(crate) use readers::Readers;
pub use readers::{Applied, FOLDER};
pub use running::Running;
