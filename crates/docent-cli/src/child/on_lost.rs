//! Policy for a command whose lock is lost, and the options that set it.

use crate::args::duration;
use crate::exit::Failure;
use clap::{Args, ValueEnum};
use docent::Client;
use std::time::Duration;

/// Time before the end of the lease at which a command is killed at the latest, so that it is dead when the
/// lease ends.
pub(super) const KILL_TIME: Duration = Duration::from_millis(200);

/// Delay after docent's own kill time before the keeper kills the command.
pub(super) const KEEPER_TIME: Duration = Duration::from_millis(100);

/// Time from SIGTERM to SIGKILL if none is given: the default of `--kill-after`, if the lease has room for
/// it.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(5);

/// Options for a command that runs while something is held.
#[derive(Debug, Clone, Args)]
pub(crate) struct LossArguments {
    /// Time for CMD from SIGTERM to SIGKILL when the lock is being lost [default: 5s, or less if the lease is
    /// shorter]
    ///
    /// CMD is dead before the lease ends, so SIGTERM is sent this long before the end. Longer times need a
    /// longer --session-timeout: on a healthy connection, the lease always has at least a third of the
    /// session timeout left.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    kill_after: Option<Duration>,

    /// What happens to CMD when the lock is being lost
    #[arg(long, value_enum, default_value_t, value_name = "FATE")]
    on_lost: OnLost,
}

/// What happens to a command whose lock is being lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// SIGTERM, then SIGKILL after --kill-after
    #[default]
    Term,
    /// SIGKILL
    Kill,
    /// Nothing: CMD can detect the loss with DOCENT_LOST_FD, and docent exits with its code
    Ignore,
}

/// Policy for ending a command before its lease ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KillPolicy {
    pub(super) on_lost: OnLost,
    /// Time from SIGTERM to SIGKILL.
    pub(super) kill_after: Duration,
}

impl LossArguments {
    /// Returns the policy for commands under guards of `client`, which must be connected.
    ///
    /// # Errors
    /// `Usage` if the time to stop is longer than the lease has room for.
    pub(crate) fn policy(&self, client: &Client) -> Result<KillPolicy, Failure> {
        let timeout = client.session_timeout().unwrap_or_default();
        let longest_grace = longest_grace(timeout, client.lease_margin().unwrap_or(timeout));
        match self.kill_after {
            Some(wanted) if wanted > longest_grace => Err(Failure::usage(format!(
                "--kill-after {wanted:?} must be at most {longest_grace:.1?} with the session timeout of {timeout:?} that the servers granted"
            ))),
            wanted => Ok(KillPolicy {
                on_lost: self.on_lost,
                kill_after: wanted.unwrap_or_else(|| KILL_AFTER.min(longest_grace)),
            }),
        }
    }
}

impl KillPolicy {
    /// Returns true if a lost lock ends the command.
    pub(crate) fn ends_command(self) -> bool {
        self.on_lost != OnLost::Ignore
    }
}

/// Longest time to stop. A lease lasts `timeout − margin` and is renewed every sixth of the timeout. Two
/// sixths are reserved for a late renewal.
fn longest_grace(timeout: Duration, margin: Duration) -> Duration {
    timeout.saturating_sub(margin).saturating_sub(timeout / 3).saturating_sub(KILL_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_connection_never_comes_near_the_stop_time() {
        let seconds = Duration::from_secs;
        // Default: a lease of 13.3 s, of which 6.7 s may pass before a late renewal.
        let timeout = seconds(20);
        assert!(
            longest_grace(timeout, timeout / 3) > KILL_AFTER
                && longest_grace(timeout, timeout / 3) < seconds(7)
        );
        assert_eq!(longest_grace(seconds(3), seconds(3)), Duration::ZERO);
    }
}
