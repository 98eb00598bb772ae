use super::below::depth;
use crate::report::{Ephemeral, LeftOut, Refusal, Report, ServerTime};
use serde::Serialize;

/// Recipes below a root, as found by a walk.
///
/// Serialized as one object with these fields; `found` is a list of [`Report`]s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Survey {
    /// Path at which the walk started.
    pub root: String,
    /// Recipes, level by level, in the order of their paths. Folders and other plain nodes are not included.
    pub found: Vec<Report>,
    /// Ephemeral nodes that a walk has read, in the order of their paths. Empty in a [live
    /// survey](crate::LiveSurvey).
    pub ephemerals: Vec<Ephemeral>,
    /// Number of nodes that were read.
    pub nodes: usize,
    /// Nodes that may not be read, in the order of their paths.
    pub refused: Vec<Refusal>,
    /// Nodes omitted because of a limit. This is a lower bound, because the nodes below them are not known.
    /// Nodes that a report omits, such as dead letters, are counted only in that report.
    pub left_out: LeftOut,
    /// Newest transaction that was seen; 0 if no node was.
    pub as_of_zxid: i64,
    /// Time that ages are relative to; `None` if no node was seen. All reports of a walk use the same source.
    pub clock: Option<ServerTime>,
}

impl Survey {
    /// Returns the survey with its recipes in order.
    pub(crate) fn sorted(mut self) -> Self {
        self.found
            .sort_by(|one, other| (depth(&one.path), &one.path).cmp(&(depth(&other.path), &other.path)));
        self
    }

    /// Returns true if nothing was refused or omitted.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.left_out.is_empty()
    }
}
