use std::time::Duration;
use tokio::time::Instant;

/// Times at which the task acts without an event.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    pub(super) sync: Option<Instant>,
    /// Time to read children again that could not be read.
    pub(super) mend: Option<Instant>,
    /// Time before which nothing is asked.
    pub(super) busy: Option<Instant>,
}

impl Alarms {
    pub(super) fn first(&self) -> Option<Instant> {
        [self.sync, self.mend, self.busy].into_iter().flatten().min()
    }
}

/// Waits until `alarm`; `None` when none is set.
pub(super) async fn at(alarm: Option<Instant>) -> Option<()> {
    tokio::time::sleep_until(alarm?).await;
    Some(())
}

/// Time over which the syncs of many caches with so many children are spread, when all lost their links
/// together.
pub(super) fn spread(children: usize) -> Duration {
    const LONGEST: Duration = Duration::from_secs(1);
    u64::try_from(children).map_or(LONGEST, Duration::from_millis).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_spread_over_a_millisecond_for_each_child_and_a_second_at_most() {
        assert_eq!(spread(0), Duration::ZERO);
        assert_eq!(spread(300), Duration::from_millis(300));
        assert_eq!(spread(70_000), Duration::from_secs(1));
    }

    #[test]
    fn the_first_alarm_is_the_next() {
        let now = Instant::now();
        assert_eq!(Alarms::default().first(), None);
        let later = now + Duration::from_secs(1);
        assert_eq!(Alarms { sync: Some(later), busy: Some(now), mend: None }.first(), Some(now));
    }
}
