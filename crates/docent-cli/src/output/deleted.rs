use serde::Serialize;

/// A deleted node or recipe, as a JSON line of its own.
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
