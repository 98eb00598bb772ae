//! Reports that follow a path.

mod reports;
mod snapshot;
mod watches;

pub use reports::Reports;
pub use snapshot::Live;
