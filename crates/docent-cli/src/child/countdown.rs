use super::on_lost::{KEEPER_TIME, KILL_TIME, KillPolicy, OnLost};
use docent::time::Timestamp;
use std::time::Duration;

/// Decides when a command is to stop, by the clock and by the lease that is left. It has neither clock nor
/// process.
#[derive(Debug)]
pub(super) struct Countdown {
    policy: KillPolicy,
    /// End of the lease as it was seen last.
    lease_end: Timestamp,
    /// Time at which the command is killed, once it was told to stop.
    kill_at: Option<Timestamp>,
}

/// Next step for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Look again after so long.
    Wait(Duration),
    /// Tell it to stop, and look again at once.
    Term,
    /// Kill it. Nothing comes after that.
    Kill,
}

impl Countdown {
    pub(super) fn new(policy: KillPolicy, now: Timestamp, left: Duration) -> Self {
        Self { policy, lease_end: now + left, kill_at: None }
    }

    /// The step to take `now`, when so much of the lease is `left`.
    pub(super) fn step(&mut self, now: Timestamp, left: Duration) -> Step {
        match self.kill_at {
            Some(at) if at <= now => Step::Kill,
            Some(at) => Step::Wait(at.since(now)),
            None if left.is_zero() => self.lost(now),
            None => self.held(now, left),
        }
    }

    /// Time at which somebody else is to kill the command, if nobody has taken the next step by then.
    pub(super) fn kill_by(&self) -> Timestamp {
        self.kill_at.unwrap_or(self.lease_end - KILL_TIME) + KEEPER_TIME
    }

    fn held(&mut self, now: Timestamp, left: Duration) -> Step {
        self.lease_end = now + left;
        let left = left.saturating_sub(KILL_TIME);
        let warning = match self.policy.on_lost {
            OnLost::Kill => Duration::ZERO,
            _ => self.policy.kill_after,
        };
        if left > warning {
            return Step::Wait(left - warning);
        }
        self.stop(now, left)
    }

    /// It was lost: because the lease is over, or before, as when its node was deleted.
    fn lost(&mut self, now: Timestamp) -> Step {
        let is_over = self.lease_end.since(now) <= KILL_TIME;
        let time = if is_over { Duration::ZERO } else { self.policy.kill_after };
        self.stop(now, time)
    }

    /// Gives the command so much time, if it is to have any.
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
    fn a_lease_that_is_renewed_stops_nothing() {
        let mut countdown = countdown(OnLost::Term);
        for second in 100..200 {
            let left = SECOND * 13 - SECOND * (second % 4);
            let step = countdown.step(at(second), left);
            assert_eq!(step, Step::Wait(left - SECOND * 5 - KILL_TIME));
        }
    }

    #[test]
    fn a_command_is_told_in_time_and_killed_before_the_lease_ends() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.step(at(107), SECOND * 6), Step::Wait(SECOND - KILL_TIME));
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Term);
        let left = SECOND * 5 - KILL_TIME;
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Wait(left));
        assert_eq!(countdown.step(at(108) + left, KILL_TIME), Step::Kill);
    }

    #[test]
    fn a_command_that_was_told_to_stop_is_killed_also_if_the_lease_is_renewed() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Term);
        assert_eq!(countdown.step(at(113), SECOND * 13), Step::Kill);
    }

    #[test]
    fn somebody_else_kills_it_later_but_before_the_lease_ends() {
        let mut countdown = countdown(OnLost::Term);
        assert_eq!(countdown.kill_by(), at(113) - KEEPER_TIME);
        countdown.step(at(101), SECOND * 13);
        assert_eq!(countdown.kill_by(), at(114) - KEEPER_TIME);
        countdown.step(at(109), SECOND * 5);
        assert_eq!(countdown.kill_by(), at(114) - KEEPER_TIME);
    }

    #[test]
    fn somebody_else_leaves_time_to_stop_after_a_loss_too() {
        let mut countdown = countdown(OnLost::Term);
        countdown.step(at(101), Duration::ZERO);
        assert_eq!(countdown.kill_by(), at(106) + KEEPER_TIME);
    }

    #[test]
    fn after_a_pause_for_longer_than_the_lease_it_is_killed_at_once() {
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
    fn without_a_warning_it_is_killed_just_before_the_lease_ends() {
        let mut countdown = countdown(OnLost::Kill);
        assert_eq!(countdown.step(at(108), SECOND * 5), Step::Wait(SECOND * 5 - KILL_TIME));
        assert_eq!(countdown.step(at(113) - KILL_TIME, KILL_TIME), Step::Kill);
    }
}
