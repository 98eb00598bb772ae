use std::fmt;

/// A client of a run. A client that crashes and starts again keeps its number and gets a new life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// Its number, from 0.
    pub number: u32,
    /// Number of times that it was started before.
    pub life: u32,
}

/// One attempt to hold something, over all clients of a run. Its grant keeps the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u64);

/// One call of a client's method, over all clients of a run.
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
