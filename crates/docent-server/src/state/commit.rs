/// The transaction that a change belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Commit {
    pub(crate) zxid: i64,
    pub(crate) session: i64,
    pub(crate) now: i64,
}
