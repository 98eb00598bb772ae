use super::on_lost::{KEEPER_TIME, KILL_TIME, KillPolicy, OnLost};
use docent::time::Timestamp;
use std::time::Duration;

/// Decides when a command must stop, from the time and the remaining lease. This type has neither a clock nor
/// a process.
#[derive(Debug)]
pub(super) struct Countdown {
    policy: KillPolicy,
    /// End of the lease when it was last checked.
    lease_end: Timestamp,
    /// Time at which the command is killed, once it was asked to stop.
    kill_at: Option<Timestamp>,
}

/// Next step for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Check again after this time.
    Wait(Duration),
    /// Ask the command to stop, then check again immediately.
    Term,
    /// Kill the command. This is the last step.
    Kill,
}

impl Countdown {
    pub(super) fn new(policy: KillPolicy, now: Timestamp, lease_left: Duration) -> Self {
        Self { policy, lease_end: now + lease_left, kill_at: None }
    }

    /// Returns the step to take `now`, with this much of the lease `lease_left`.
    pub(super) fn step(&mut self, now: Timestamp, lease_left: Duration) -> Step {
        match self.kill_at {
            Some(at) if at <= now => Step::Kill,
            Some(at) => Step::Wait(at.since(now)),
            None if lease_left.is_zero() => self.lost(now),
            None => self.held(now, lease_left),
        }
    }

    /// Returns the time at which the keeper must kill the command if no step was taken by then.
    pub(super) fn kill_by(&self) -> Timestamp {
        self.kill_at.unwrap_or(self.lease_end - KILL_TIME) + KEEPER_TIME
    }

    fn held(&mut self, now: Timestamp, lease_left: Duration) -> Step {
        self.lease_end = now + lease_left;
        let lease_left = lease_left.saturating_sub(KILL_TIME);
        let warning = match self.policy.on_lost {
            OnLost::Kill => Duration::ZERO,
            _ => self.policy.kill_after,
        };
        if lease_left > warning {
            return Step::Wait(lease_left - warning);
        }
        self.stop(now, lease_left)
    }

    /// The guard was lost, either because the lease ended or earlier, for example because its node was
    /// deleted.
    fn lost(&mut self, now: Timestamp) -> Step {
        let is_expired = self.lease_end.since(now) <= KILL_TIME;
        let time = if is_expired { Duration::ZERO } else { self.policy.kill_after };
        self.stop(now, time)
    }

    /// Grants the command this much time to stop. Kills it immediately if the time is zero or the policy
    /// allows none.
    fn stop(&mut self, now: Timestamp, time: Duration) -> Step {
        self.kill_at = Some(now + time);
        match self.policy.on_lost {
            OnLost::Kill => Step::Kill,
            _ if time.is_zero() => Step::Kill,
            _ => Step::Term,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Timestamp {
        Timestamp::default() + SECOND * seconds
    }

    fn countdown(on_lost: OnLost) -> Countdown {
        Countdown::new(KillPolicy { on_lost, kill_after: SECOND * 5 }, at(100), SECOND * 13)
    }

    #[test]
    fn a_renewed_lease_does_not_stop_the_command() {
        let mut countdown = countdown(OnLost::Term);
        for second in 100..200 {
            let lease_left = SECOND * 13 - SECOND * (second % 4);
            let step = countdown.step(at(second), lease_left);
            assert_eq!(step, Step::Wait(lease_left - SECOND * 5 - KILL_TIME));
        }
    }

    #[test]
    fn a_command_is_warned_in_time_and_killed_before_the_lease_ends() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.step(at(107), SECOND * 6), Step::Wait(SECOND - KILL_TIME));
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Term);
        let wait = SECOND * 5 - KILL_TIME;
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Wait(wait));
        assert_eq!(countdown.step(at(108) + wait, KILL_TIME), Step::Kill);
    }

    #[test]
    fn a_command_that_was_warned_is_killed_even_if_the_lease_is_renewed() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Term);
        assert_eq!(countdown.step(at(113), SECOND * 13), Step::Kill);
    }

    #[test]
    fn the_keeper_kills_a_command_later_but_before_the_lease_ends() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.kill_by(), at(113) - KEEPER_TIME);
        countdown.step(at(101), SECOND * 13);
        assert_eq!(countdown.kill_by(), at(114) - KEEPER_TIME);
        countdown.step(at(109), SECOND * 5);
        assert_eq!(countdown.kill_by(), at(114) - KEEPER_TIME);
    }

    #[test]
    fn the_keeper_also_leaves_time_to_stop_after_a_loss() {
        let mut countdown = countdown(OnLost::Term);
        countdown.step(at(101), Duration::ZERO);
        assert_eq!(countdown.kill_by(), at(106) + KEEPER_TIME);
    }

    #[test]
    fn after_a_pause_beyond_the_lease_the_command_is_killed_immediately() {
        assert_eq!(countdown(OnLost::Term).step(at(120), Duration::ZERO), Step::Kill);
    }

    #[test]
    fn a_loss_before_the_end_of_the_lease_leaves_time_to_stop() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.step(at(101), Duration::ZERO), Step::Term);
        assert_eq!(countdown.step(at(105), Duration::ZERO), Step::Wait(SECOND));
        assert_eq!(countdown.step(at(106), Duration::ZERO), Step::Kill);
    }

    #[test]
    fn without_a_warning_the_command_is_killed_just_before_the_lease_ends() {
        let mut countdown = countdown(OnLost::Kill);
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Wait(SECOND * 5 - KILL_TIME));
        assert_eq!(countdown.step(at(113) - KILL_TIME, KILL_TIME), Step::Kill);
    }
}
