/// A file below the `src` of a crate.
#[derive(Debug)]
pub(super) struct Source {
    /// As seen from `src`.
    pub(super) path: String,
    pub(super) text: String,
}
