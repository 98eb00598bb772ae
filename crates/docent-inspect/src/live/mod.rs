//! Streams of reports on a path, and of changes of the recipes below a root.

mod board;
mod feed;
mod follower;
mod progress;
mod reports;
mod snapshot;
mod surveys;
mod watch;
mod watches;

pub(crate) use feed::Feeds;
pub use reports::Reports;
pub use snapshot::{Live, LiveSurvey, SurveyEvent};
pub use surveys::Surveys;
