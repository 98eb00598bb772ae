use super::condition::Condition;
use crate::args::duration;
use clap::Args;
use std::time::Duration;

/// Wait until a lock is free, a queue is empty, or a service has enough instances.
///
/// docent follows the path with watches, also across lost connections. It then exits with 0, without keeping
/// the state: a lock that was free may be held again. To run a command under the lock, use `docent lock`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path of a lock, a semaphore, an election, a queue or a service
    pub(super) path: String,

    /// State to wait for: `free`, `empty` or `instances=N`
    ///
    /// free: no client holds the lock or leads the election, or a permit of the semaphore is available.
    /// empty: the queue has no items, in work or delayed. instances=N: at least N instances of the service
    /// may be given work. A path without a node is free and empty, and has no instances.
    #[arg(long = "for", value_name = "STATE")]
    pub(super) condition: Condition,

    /// Maximum time to wait, such as 30s; then fail with 75
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(super) wait: Option<Duration>,
}
