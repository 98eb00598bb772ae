use std::fmt;

/// A client of a run. A client that crashes and restarts keeps its number, and its `life` increases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// Number of the client, from 0.
    pub number: u32,
    /// Number of restarts so far.
    pub life: u32,
}

/// An attempt to hold something, numbered over all clients of a run. Its grant has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u64);

/// A call of a client's method, numbered over all clients of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.life == 0 {
            write!(f, "c{}", self.number)
        } else {
            write!(f, "c{}.{}", self.number, self.life)
        }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}", self.0)
    }
}
