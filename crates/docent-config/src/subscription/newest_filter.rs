use crate::value::ValueFormat;
use crate::{Origin, Rejection, Revision, Snapshot};
use bytes::Bytes;
use docent_core::planted;
use std::sync::Arc;

/// Filter that remembers the latest value received, so that nothing older is shown after it.
pub(crate) struct NewestFilter<T> {
    format: ValueFormat<T>,
    /// The latest revision received from the servers, valid or not.
    newest: Option<Revision>,
    rollbacks: u64,
}

/// Verdict on a node received from the servers.
pub(crate) enum Judgement<T> {
    Good(Arc<Snapshot<T>>),
    Missing,
    Refused(Rejection),
    /// Older than a value that was shown before.
    Old,
}

impl<T: 'static> NewestFilter<T> {
    pub(crate) fn new(format: ValueFormat<T>, rollbacks: u64) -> Self {
        Self { format, newest: None, rollbacks }
    }

    /// Returns how often the client had found the ensemble restored from an older snapshot when the latest
    /// value arrived.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.rollbacks
    }

    /// Judges what the servers have: a revision with its data, or nothing. `rollbacks` counts how often the
    /// client found the ensemble restored from an older snapshot.
    pub(crate) fn judge(&mut self, found: Option<(Revision, &Bytes)>, rollbacks: u64) -> Judgement<T> {
        let Some((revision, data)) = found else { return Judgement::Missing };
        let is_older = self.newest.is_some_and(|newest| revision.mzxid < newest.mzxid);
        // Values never go back, except after a restore of the ensemble from an older snapshot, which
        // `rollbacks` counts.
        if is_older && self.rollbacks == rollbacks && !planted!(OlderAfterNewer) {
            return Judgement::Old;
        }
        self.rollbacks = rollbacks;
        self.newest = Some(revision);
        match self.format.read(data) {
            Ok(value) => Judgement::Good(Arc::new(Snapshot::new(value, revision, Origin::Server))),
            Err(refusal) => Judgement::Refused(refusal.of(revision)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use std::time::SystemTime;

    fn filter() -> NewestFilter<u32> {
        NewestFilter::new(ValueFormat::new("/a", Arc::new(Json::new())), 0)
    }

    /// Returns the verdict on a value: its text if it is valid, otherwise a word.
    fn judged(filter: &mut NewestFilter<u32>, mzxid: i64, data: &'static str, rollbacks: u64) -> String {
        let revision = Revision { czxid: 1, mzxid, version: 0, modified: SystemTime::UNIX_EPOCH };
        match filter.judge(Some((revision, &Bytes::from_static(data.as_bytes()))), rollbacks) {
            Judgement::Good(snapshot) => snapshot.to_string(),
            Judgement::Refused(_) => "refused".to_owned(),
            Judgement::Missing => "missing".to_owned(),
            Judgement::Old => "old".to_owned(),
        }
    }

    #[test]
    fn a_value_older_than_one_that_was_shown_or_refused_is_not_shown() {
        let mut filter = filter();
        assert_eq!(judged(&mut filter, 5, "5", 0), "5");
        assert_eq!(judged(&mut filter, 4, "4", 0), "old");
        assert_eq!(judged(&mut filter, 7, "x", 0), "refused");
        assert_eq!(judged(&mut filter, 6, "6", 0), "old");
        assert!(matches!(filter.judge(None, 0), Judgement::Missing));
        assert_eq!(judged(&mut filter, 6, "6", 0), "old", "older values must stay hidden after a deletion");
        assert_eq!(judged(&mut filter, 8, "8", 0), "8");
    }

    #[test]
    fn values_of_a_restored_ensemble_are_accepted_again() {
        let mut filter = filter();
        assert_eq!(judged(&mut filter, 100, "100", 0), "100");
        assert_eq!(judged(&mut filter, 9, "9", 1), "9");
        assert_eq!(filter.rollbacks(), 1);
        assert_eq!(judged(&mut filter, 8, "8", 1), "old");
        assert_eq!(judged(&mut filter, 10, "10", 1), "10");
    }
}
