//! Rule for a command whose lock is lost, and the options that set it.

use crate::args::duration;
use crate::exit::Failure;
use clap::{Args, ValueEnum};
use docent::Client;
use std::time::Duration;

/// Time before the end of the lease at which a command is killed at the latest, so that it is dead by then.
pub(super) const KILL_TIME: Duration = Duration::from_millis(200);

/// Time from the one at which we are to kill a command to the one at which its keeper does.
pub(super) const KEEPER_TIME: Duration = Duration::from_millis(100);

/// Time from SIGTERM to SIGKILL where no other is asked for: the default of `--kill-after`, where the lease
/// has room for it.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(5);

/// Options about a command that runs while something is held.
#[derive(Debug, Clone, Args)]
pub(crate) struct LossArguments {
    /// Time that CMD has from SIGTERM to SIGKILL when the lock is being lost [default: 5s, or what the lease
    /// has room for]
    ///
    /// CMD is dead before the lease ends: SIGTERM is sent so long before. Longer times need a longer
    /// --session-timeout, for while the link is healthy the lease has at least a third of that left.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    kill_after: Option<Duration>,

    /// Fate of CMD when the lock is being lost
    #[arg(long, value_enum, default_value_t, value_name = "FATE")]
    on_lost: OnLost,
}

/// Fate of a command whose lock is being lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// SIGTERM, and SIGKILL after --kill-after.
    #[default]
    Term,
    /// SIGKILL.
    Kill,
    /// Nothing: CMD can see it by DOCENT_LOST_FD, and its exit code is the one of docent.
    Ignore,
}

/// Rule by which a command is ended before its lease is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KillPolicy {
    pub(super) on_lost: OnLost,
    /// Time from SIGTERM to SIGKILL.
    pub(super) kill_after: Duration,
}

impl LossArguments {
    /// The rule for commands under guards of `client`, which is connected.
    ///
    /// # Errors
    /// `Usage` when the time to stop is longer than the lease has room for.
    pub(crate) fn policy(&self, client: &Client) -> Result<KillPolicy, Failure> {
        let timeout = client.session_timeout().unwrap_or_default();
        let room = room(timeout, client.lease_margin().unwrap_or(timeout));
        match self.kill_after {
            Some(wanted) if wanted > room => Err(Failure::usage(format!(
                "--kill-after {wanted:?} must be at most {room:.1?} with the session timeout of {timeout:?} that the servers granted"
            ))),
            wanted => Ok(KillPolicy {
                on_lost: self.on_lost,
                kill_after: wanted.unwrap_or_else(|| KILL_AFTER.min(room)),
            }),
        }
    }
}

impl KillPolicy {
    /// True when a lost lock ends the command.
    pub(crate) fn ends_command(self) -> bool {
        self.on_lost != OnLost::Ignore
    }
}

/// Longest time to stop. A lease is `timeout − margin` long, and renewed each sixth of the timeout: twice
/// that is left for a renewal that is late.
fn room(timeout: Duration, margin: Duration) -> Duration {
    timeout.saturating_sub(margin).saturating_sub(timeout / 3).saturating_sub(KILL_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_link_never_gets_near_the_time_to_stop() {
        let seconds = Duration::from_secs;
        // The default: a lease of 13.3 s, of which 6.7 s may pass until a renewal that is late.
        let timeout = seconds(20);
        assert!(room(timeout, timeout / 3) > KILL_AFTER && room(timeout, timeout / 3) < seconds(7));
        assert_eq!(room(seconds(3), seconds(3)), Duration::ZERO);
    }
}
