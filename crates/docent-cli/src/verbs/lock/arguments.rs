use crate::args::duration;
use crate::child::LossArguments;
use clap::Args;
use std::ffi::OsString;
use std::time::Duration;

/// Hold a lock while CMD runs; without CMD, hold it until a signal comes.
///
/// CMD runs without a shell, in its own process group; signals are passed on to it. Its environment has
/// DOCENT_PATH, the path of the lock; DOCENT_FENCE, if the lock is exclusive, a number that rises from holder
/// to holder; and on Linux DOCENT_LOST_FD, a descriptor that reads end of file when the lock is being lost.
/// CMD and its process group are killed if docent is killed, or if docent is stalled until the lock is about
/// to be lost. Processes that CMD leaves in its group when it ends get SIGTERM, and SIGKILL after
/// --kill-after, before the lock is released.
///
/// Without CMD, docent prints the path and the fence once the lock is held, `-` if there is no fence. A
/// signal then releases the lock, with exit code 0. A signal while docent waits ends docent with 128 + its
/// number.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path of the lock
    pub(super) path: String,

    #[command(flatten)]
    pub(super) kind: Kind,

    /// Do not wait: fail with 75 if the lock is not free, and with 69 if the servers do not say so within 5s,
    /// or the time of --timeout
    #[arg(short, long, conflicts_with = "wait")]
    pub(super) nonblock: bool,

    /// Maximum time to wait, such as 30s, then fail with 75; also limits connecting, which always has at
    /// least 5s
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(super) wait: Option<Duration>,

    /// Exit code instead of 75 if the lock was not acquired; 0 also hides the message, except on a terminal
    #[arg(short = 'E', long, value_name = "CODE")]
    pub(super) conflict_exit_code: Option<u8>,

    /// Label shown to others beside host and process, such as the name of the job
    #[arg(long)]
    pub(super) label: Option<String>,

    #[command(flatten)]
    pub(super) loss: LossArguments,

    /// Command to run, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

/// Kind of lock. All clients of a path must use the same kind: a mutex, both sides of a read/write lock, or
/// permits.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct Kind {
    /// The read side of a read/write lock, instead of a mutex
    #[arg(short, long)]
    pub(super) shared: bool,

    /// The write side of a read/write lock, instead of a mutex
    #[arg(short = 'x', long)]
    pub(super) exclusive: bool,

    /// N of LIMIT permits of a semaphore, instead of a mutex; all clients must give the same LIMIT
    #[arg(long, value_name = "N/LIMIT", value_parser = permits)]
    pub(super) permits: Option<Permits>,
}

/// Permits of a semaphore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permits {
    pub(super) wanted: u32,
    pub(super) limit: u32,
}

fn permits(text: &str) -> Result<Permits, String> {
    let rule =
        || "must be two numbers such as 1/4: N permits of LIMIT, N at least 1 and at most LIMIT".to_owned();
    let (wanted, limit) = text.split_once('/').ok_or_else(rule)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| rule());
    let permits = Permits { wanted: number(wanted)?, limit: number(limit)? };
    if (1..=permits.limit).contains(&permits.wanted) { Ok(permits) } else { Err(rule()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_some_of_a_limit() {
        assert_eq!(permits("2/4"), Ok(Permits { wanted: 2, limit: 4 }));
        for wrong in ["", "2", "0/4", "5/4", "a/4", "1/-1"] {
            assert!(permits(wrong).is_err(), "{wrong}");
        }
    }
}
