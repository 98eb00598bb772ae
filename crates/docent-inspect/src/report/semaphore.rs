use super::Contender;
use serde::Serialize;

/// Permits of a semaphore and those who wait for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Semaphore {
    /// The limit as it stands in the semaphore's node. `None` where it is not kept there, as Curator's never
    /// is: then all permits count as held, but for that of the one that has the turn.
    pub limit: Option<u32>,
    /// Permits that are out. All of them hold.
    pub permits: Vec<Contender>,
    /// Those who wait for a permit, the next one first.
    pub waiters: Vec<Contender>,
}
