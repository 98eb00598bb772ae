use super::following::Followed;
use crate::inspect::Survey;
use crate::report::Report;
use serde::Serialize;

/// Report of a path that is followed.
///
/// It is serialized as the [`Report`], with `is_stale` and `unwatched` beside its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Live {
    /// The report.
    #[serde(flatten)]
    pub report: Report,
    /// True while the servers are away: it may have changed since.
    pub is_stale: bool,
    /// Nodes that the report is made from and that are not watched, or not wholly, because of the limit:
    /// their changes are seen with the next one of another node, or after a
    /// [time](crate::Limits::look_every).
    pub unwatched: usize,
}

impl From<Followed<Report>> for Live {
    fn from(Followed { told: report, is_stale, unwatched }: Followed<Report>) -> Self {
        Self { report, is_stale, unwatched }
    }
}

/// Recipes below a root that is followed.
///
/// It is serialized as the [`Survey`], with `is_stale` and `unwatched` beside its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LiveSurvey {
    /// The recipes.
    #[serde(flatten)]
    pub survey: Survey,
    /// True while the servers are away: they may have changed since.
    pub is_stale: bool,
    /// Nodes that were looked at and that are not watched, as those of a [`Live`] report.
    pub unwatched: usize,
}

impl From<Followed<Survey>> for LiveSurvey {
    fn from(Followed { told: survey, is_stale, unwatched }: Followed<Survey>) -> Self {
        Self { survey, is_stale, unwatched }
    }
}
