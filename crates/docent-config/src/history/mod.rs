//! Earlier values of a configuration.

mod entry;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod history;
mod obstacles;

pub use entry::HistoryEntry;
pub(crate) use history::{FOLDER, History, Listed, Plan};
pub(crate) use obstacles::Obstacles;
