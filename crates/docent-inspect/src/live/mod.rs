//! Streams of reports on a path, and of changes of the recipes below a root.

mod board;
mod feed;
mod feeds;
mod follower;
mod reports;
mod snapshot;
mod subscriber;
mod surveys;
mod watch;
mod watches;

pub(crate) use feeds::Feeds;
pub use reports::Reports;
pub use snapshot::{Live, LiveSurvey, SurveyEvent};
pub use surveys::Surveys;
