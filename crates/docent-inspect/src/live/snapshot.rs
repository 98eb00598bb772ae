use crate::inspect::Survey;
use crate::report::{LeftOut, Refusal, Report};
use serde::Serialize;

/// Report on a followed path.
///
/// Serialized as the [`Report`], with `is_stale` and `unwatched` beside its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Live {
    /// Report.
    #[serde(flatten)]
    pub report: Report,
    /// True from a lost connection or a failed read until everything that changed meanwhile was read.
    pub is_stale: bool,
    /// Number of nodes whose changes are seen only with the next poll, because no persistent watch
    /// covers them and the [limit of watches](crate::Limits::watches) was reached: before ZooKeeper 3.6, or
    /// outside of the root that is followed.
    pub unwatched: usize,
}

/// Recipes below a followed root.
///
/// Serialized as the [`Survey`], with `is_stale` and `unwatched` beside its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LiveSurvey {
    /// Recipes.
    #[serde(flatten)]
    pub survey: Survey,
    /// True from a lost connection or a failed read until everything that changed meanwhile was read.
    pub is_stale: bool,
    /// Number of nodes whose changes are seen late, as in a [`Live`] report.
    pub unwatched: usize,
}

/// Item of [`Surveys`](crate::Surveys).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SurveyEvent {
    /// All current recipes: the first item, and again if the subscriber was too slow to get each deletion.
    Snapshot(Box<LiveSurvey>),
    /// A recipe is new or has changed.
    Changed(Box<Report>),
    /// The recipe was deleted, or is no longer selected.
    Gone {
        /// Path of the recipe.
        path: String,
        /// Newest transaction that was seen when the recipe was missing.
        as_of_zxid: i64,
    },
    /// What the survey does not include has changed.
    Gaps {
        /// Nodes that may not be read, in the order of their paths.
        refused: Vec<Refusal>,
        /// Nodes omitted because of a limit.
        left_out: LeftOut,
        /// Number of nodes whose changes are seen late, as in a [`Live`] report.
        unwatched: usize,
    },
    /// The connection was lost or a read failed: recipes may now change without an event.
    Stale,
    /// The survey is up to date again: all changes that were missed have been yielded.
    Current,
}
