//! Earlier values of a configuration.

mod entry;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod history;
mod obstacles;

pub use entry::HistoryEntry;
pub use history::{FOLDER, name, parse};
pub(crate) use history::{History, Listed, Plan};
pub(crate) use obstacles::Obstacles;
