/// Role of a place in a line: whether others may hold beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It excludes everybody else.
    Exclusive,
    /// It goes together with others of its kind.
    Shared,
}
