use super::Contender;
use serde::Serialize;

/// Holders and waiters of a mutex or of a lock of readers and a writer, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// Everybody in the line, the first first.
    pub contenders: Vec<Contender>,
}

impl Line {
    /// Those who hold the lock: one, or several readers.
    pub fn holders(&self) -> impl Iterator<Item = &Contender> {
        self.contenders.iter().filter(|contender| contender.holds)
    }

    /// Those who wait, the next one first.
    pub fn waiters(&self) -> impl Iterator<Item = &Contender> {
        self.contenders.iter().filter(|contender| !contender.holds)
    }
}
