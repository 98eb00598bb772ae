use super::Contender;
use serde::Serialize;

/// Holders and waiters of a mutex or a read/write lock, in queue order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// All contenders in queue order.
    pub contenders: Vec<Contender>,
}

impl Line {
    /// Returns the holders: one, or several readers.
    pub fn holders(&self) -> impl Iterator<Item = &Contender> {
        self.contenders.iter().filter(|contender| contender.holds)
    }

    /// Returns the waiters, the next one first.
    pub fn waiters(&self) -> impl Iterator<Item = &Contender> {
        self.contenders.iter().filter(|contender| !contender.holds)
    }
}
