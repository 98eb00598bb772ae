use super::{Kind, LeftOut, Recipe, Refusal, ServerTime, Writer};
use serde::Serialize;

/// Report on one path: which recipe it is, and its state.
///
/// Nodes are read one after the other, so a report is not a snapshot: `as_of_zxid` is the newest transaction
/// that was seen in any of them.
///
/// # JSON
/// Serialized as one object with the fields below and, beside them, `kind` and the fields of the [`Recipe`].
/// The format is stable: fields and kinds may be added, but none changes its meaning. Times are in
/// milliseconds since 1970 and their names end with `_ms`. Sessions are texts such as `"0x10000a3f"`. Unknown
/// values are `null`, except a missing [`Since`](crate::Since), whose two fields are omitted. Names are
/// serialized unchanged, so use [`printable`](crate::printable) before printing them to a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Path as given.
    pub path: String,
    /// Recipe.
    #[serde(flatten)]
    pub recipe: Recipe,
    /// Other kinds with the same layout, which names and data do not distinguish.
    pub may_be: Vec<Kind>,
    /// Path of the recipe that this one is part of, such as the kazoo semaphore whose waiters queue in this
    /// lock. A walk lists the semaphore, not the lock.
    pub part_of: Option<String>,
    /// Libraries whose formats were seen, without duplicates.
    pub writers: Vec<Writer>,
    /// Nodes that may not be read. The other nodes are still reported.
    pub refused: Vec<Refusal>,
    /// Nodes omitted because of a limit.
    pub left_out: LeftOut,
    /// Newest transaction that was seen; 0 if no node was.
    pub as_of_zxid: i64,
    /// Time that ages are relative to; `None` if no node was seen.
    pub clock: Option<ServerTime>,
}

impl Report {
    /// Returns the kind of the recipe.
    pub fn kind(&self) -> Kind {
        self.recipe.kind()
    }

    /// Returns the report without parts that change with time, or with nodes that the report is not based on.
    pub(crate) fn without_times(&self) -> Self {
        Self { as_of_zxid: 0, clock: None, ..self.clone() }
    }

    /// Returns true if nothing was refused or omitted.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.left_out.is_empty()
    }
}
