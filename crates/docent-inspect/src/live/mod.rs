//! Streams of reports on a path, and of surveys below a root.

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
