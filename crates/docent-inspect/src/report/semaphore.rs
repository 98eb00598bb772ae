use super::Contender;
use serde::Serialize;

/// Permits of a semaphore and those who wait for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Semaphore {
    /// The limit as it stands in the semaphore's node. `None` where it is not kept there, as Curator's never
    /// is: then all permits count as held.
    pub limit: Option<u32>,
    /// Permits that are out, and those about to be.
    pub permits: Vec<Contender>,
    /// Those who wait for their turn, the next one first.
    pub waiters: Vec<Contender>,
}
