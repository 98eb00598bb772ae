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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_alarm_is_the_next() {
        let now = Instant::now();
        assert_eq!(Alarms::default().first(), None);
        let later = now + Duration::from_secs(1);
        assert_eq!(Alarms { sync: Some(later), busy: Some(now), mend: None }.first(), Some(now));
    }
}
