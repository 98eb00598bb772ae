//! Reports that follow a path, and surveys that follow a root.

mod following;
mod reports;
mod snapshot;
mod surveys;
mod turn;
mod wanted;
mod watch;
mod watches;

pub use reports::Reports;
pub use snapshot::{Live, LiveSurvey};
pub use surveys::Surveys;
