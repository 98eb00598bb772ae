use super::Contender;
use serde::Serialize;

/// Permits of a semaphore, and contenders that wait for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Semaphore {
    /// Limit stored in the semaphore's node. `None` if it is not stored, as Curator never does. All permits
    /// then count as held, except those of the contender that has the turn.
    pub limit: Option<u32>,
    /// Permits in use. All of them are held.
    pub permits: Vec<Contender>,
    /// Contenders that wait for a permit, the next one first.
    pub waiters: Vec<Contender>,
}
