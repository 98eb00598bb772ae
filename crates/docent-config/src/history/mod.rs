//! Earlier values of a configuration.

#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod history;

pub use history::{FOLDER, HistoryEntry, name, parse};
pub(crate) use history::{History, Keep, Listed, Obstacles, Plan};
