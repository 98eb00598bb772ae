use crate::report::{LeftOut, Refusal, Report, ServerTime};
use serde::Serialize;

/// Recipes below a root, as a walk found them.
///
/// It is serialized as one object with these fields; `found` is a list of [`Report`]s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Survey {
    /// Path that the walk began at.
    pub root: String,
    /// The recipes, level by level, in the order of their paths. Folders and other plain nodes are no
    /// recipes.
    pub found: Vec<Report>,
    /// Number of nodes that were read.
    pub nodes: usize,
    /// Nodes that may not be read, in the order of their paths.
    pub refused: Vec<Refusal>,
    /// Nodes that were left out because of a limit: at least so many, as those below them are not known.
    pub left_out: LeftOut,
    /// The newest transaction that was seen; 0 when no node was.
    pub as_of_zxid: i64,
    /// Time that ages are counted to; `None` when no node was seen. Reports of a walk all have the same
    /// source.
    pub clock: Option<ServerTime>,
}

impl Survey {
    /// True when nothing was refused or left out.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.left_out.is_empty()
    }
}
