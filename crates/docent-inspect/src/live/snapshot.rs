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
    /// Nodes that the report is made from and that are not watched because of the limit: their changes are
    /// seen with the next one of another node.
    pub unwatched: usize,
}
