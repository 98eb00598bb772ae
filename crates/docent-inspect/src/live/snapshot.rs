use super::following::Followed;
use crate::inspect::Survey;
use crate::report::Report;
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
    /// True while the servers are unreachable: the path may have changed since.
    pub is_stale: bool,
    /// Number of nodes that the report is based on but that are not watched, or not completely, because of
    /// the limit. Their changes are seen together with the next change of another node, or after a
    /// [time](crate::Limits::look_every).
    pub unwatched: usize,
}

impl From<Followed<Report>> for Live {
    fn from(Followed { result: report, is_stale, unwatched }: Followed<Report>) -> Self {
        Self { report, is_stale, unwatched }
    }
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
    /// True while the servers are unreachable: the recipes may have changed since.
    pub is_stale: bool,
    /// Number of inspected nodes that are not watched, as in a [`Live`] report.
    pub unwatched: usize,
}

impl From<Followed<Survey>> for LiveSurvey {
    fn from(Followed { result: survey, is_stale, unwatched }: Followed<Survey>) -> Self {
        Self { survey, is_stale, unwatched }
    }
}
