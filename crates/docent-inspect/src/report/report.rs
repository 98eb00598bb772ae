use super::{Kind, LeftOut, Recipe, Refusal, ServerTime, Writer};
use serde::Serialize;

/// Report about one path: the recipe that it is, and how that stands.
///
/// Its nodes are read one after the other, so it is no snapshot: `as_of_zxid` is the newest transaction that
/// was seen in any of them.
///
/// # JSON
/// It is serialized as one object with the fields below and, beside them, `kind` and the fields of the
/// [`Recipe`]. The form is stable: fields and kinds may be added, and none changes its meaning. Times are in
/// milliseconds since 1970 and their names end with `_ms`; sessions are texts such as `"0x10000a3f"`; what is
/// not known is `null`, but for a missing [`Since`](crate::Since), whose two fields are left out.
/// Names are written as they are stored, so a terminal must be given them through
/// [`printable`](crate::printable).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The path, as it was given.
    pub path: String,
    /// The recipe.
    #[serde(flatten)]
    pub recipe: Recipe,
    /// Other kinds that have the same layout, so that names and data do not tell them apart.
    pub may_be: Vec<Kind>,
    /// Libraries whose formats were seen, each once.
    pub writers: Vec<Writer>,
    /// Nodes that may not be read. The others are reported all the same.
    pub refused: Vec<Refusal>,
    /// Nodes that were left out because of a limit.
    pub left_out: LeftOut,
    /// The newest transaction that was seen; 0 when no node was.
    pub as_of_zxid: i64,
    /// Time that ages are counted to; `None` when no node was seen.
    pub clock: Option<ServerTime>,
}

impl Report {
    /// The kind of the recipe.
    pub fn kind(&self) -> Kind {
        self.recipe.kind()
    }

    /// The report without what changes with time and with nodes that it is not made from.
    pub(crate) fn timeless(&self) -> Self {
        Self { as_of_zxid: 0, clock: None, ..self.clone() }
    }

    /// True when nothing was refused or left out.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.left_out.is_empty()
    }
}
