use crate::child::CommandExit;
use std::time::Duration;

/// Minimum time between the starts of two terms.
const SHORTEST: Duration = Duration::from_secs(1);

/// Maximum time between the starts of two terms. A command that ran for longer has not failed in a row.
const LONGEST: Duration = Duration::from_secs(60);

/// Terms in a row in which the command failed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u32,
}

impl Failures {
    /// Notes how the command ended, after it ran for this time. Returns the number of failures in a row.
    pub(super) fn note(&mut self, exit: CommandExit, ran: Duration) -> u32 {
        self.count = match exit.success() {
            true => 0,
            false if ran >= LONGEST => 1,
            false => self.count.saturating_add(1),
        };
        self.count
    }

    /// Returns the minimum time from the start of this term to that of the next: one second, doubled with
    /// each failure after the first one.
    pub(super) fn interval(&self) -> Duration {
        let factor = 2_u32.saturating_pow(self.count.saturating_sub(1));
        SHORTEST.saturating_mul(factor).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn exit(code: i32) -> CommandExit {
        CommandExit::new(ExitStatus::from_raw(code << 8), true)
    }

    #[test]
    fn the_interval_doubles_until_a_term_goes_well() {
        let mut failures = Failures::default();
        let mut intervals = vec![failures.interval().as_secs()];
        for number in 1..=8 {
            assert_eq!(failures.note(exit(1), Duration::ZERO), number);
            intervals.push(failures.interval().as_secs());
        }
        assert_eq!(intervals, [1, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(failures.note(exit(1), LONGEST), 1, "a long run starts the count again");
        assert_eq!(failures.note(exit(0), Duration::ZERO), 0);
        assert_eq!(failures.interval(), SHORTEST);
        failures.count = u32::MAX;
        assert_eq!(failures.note(exit(1), Duration::ZERO), u32::MAX);
        assert_eq!(failures.interval(), LONGEST);
    }
}
