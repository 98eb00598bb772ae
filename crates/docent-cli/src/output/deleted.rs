use serde::Serialize;

/// Node that is no more, or a recipe, as JSON shows it in a line of its own.
#[derive(Debug, Serialize)]
pub(crate) struct Deleted<'a> {
    path: &'a str,
    deleted: bool,
}

impl<'a> Deleted<'a> {
    pub(crate) fn new(path: &'a str) -> Self {
        Self { path, deleted: true }
    }
}
