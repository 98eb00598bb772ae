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
        match self.format.read_revision(revision, data) {
            Ok(value) => Judgement::Good(Arc::new(Snapshot::new(value, revision, Origin::Server))),
            Err(refusal) => Judgement::Refused(refusal),
        }
    }
}

/// State of a value, as shown to its subscriptions. The numbers show each subscription what is new.
pub(crate) struct ValueState<T> {
    /// The last valid value, and the number of valid values before it.
    pub(crate) good: Option<Arc<Snapshot<T>>>,
    pub(crate) good_number: u64,
    /// State of the value on the servers.
    pub(crate) latest: Latest,
    pub(crate) latest_number: u64,
    /// Number of rejected values.
    pub(crate) refused: u64,
    /// Number of times the ensemble was restored from an older snapshot, so that older values were accepted
    /// again.
    pub(crate) rollbacks: u64,
    /// True once a value existed on the servers, valid or not, according to them or to the local file.
    pub(crate) existed: bool,
    /// True if the local file was read, or if there is none.
    pub(crate) file_read: bool,
    /// Transactions that created and wrote the node that the cache reported last. `None` before its first
    /// report, `Some(None)` for no node.
    pub(crate) processed: Option<Option<Written>>,
}

/// Transactions that created a node and last wrote it.
pub(crate) type Written = (i64, i64);

#[derive(Debug)]
pub(crate) enum Latest {
    Unknown,
    /// The last valid value.
    Good,
    Missing,
    Refused(Rejection),
}

impl<T> ValueState<T> {
    pub(crate) fn new(default: Option<Arc<Snapshot<T>>>, file_read: bool, rollbacks: u64) -> Self {
        Self {
            good: default,
            good_number: 0,
            latest: Latest::Unknown,
            latest_number: 0,
            refused: 0,
            rollbacks,
            existed: false,
            file_read,
            processed: None,
        }
    }

    /// Applies a verdict. Returns true if the state changed.
    pub(crate) fn enter(&mut self, judgement: &Judgement<T>) -> bool {
        match judgement {
            Judgement::Good(snapshot) => {
                self.good = Some(Arc::clone(snapshot));
                self.good_number += 1;
                self.latest = Latest::Good;
            }
            Judgement::Missing => self.latest = Latest::Missing,
            Judgement::Refused(refusal) => {
                self.refused += 1;
                self.latest = Latest::Refused(refusal.clone());
            }
            Judgement::Old => return false,
        }
        self.existed |= !matches!(judgement, Judgement::Missing);
        self.latest_number += 1;
        true
    }

    /// Applies the content of the local file, unless the servers answered first.
    pub(crate) fn enter_file(&mut self, snapshot: Option<Arc<Snapshot<T>>>) {
        self.file_read = true;
        self.existed |= snapshot.is_some();
        let is_from_server = self.good.as_ref().is_some_and(|good| good.origin() == Origin::Server);
        if let Some(snapshot) = snapshot.filter(|_| !is_from_server) {
            self.good = Some(snapshot);
            self.good_number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, Revision};
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

    #[test]
    fn the_servers_override_the_file_and_both_override_the_default() {
        let snapshot = |value, origin| {
            let revision = Revision { czxid: 1, mzxid: 900, version: 0, modified: SystemTime::UNIX_EPOCH };
            Some(Arc::new(Snapshot::new(value, revision, origin)))
        };
        let mut state = ValueState::new(Some(Arc::new(Snapshot::default_value(1_u32))), false, 0);
        state.enter_file(snapshot(2, Origin::File));
        assert_eq!((*state.good.as_ref().unwrap().value(), state.file_read), (2, true));
        let Some(server) = snapshot(3, Origin::Server) else { unreachable!() };
        assert!(state.enter(&Judgement::Good(server)));
        state.enter_file(snapshot(2, Origin::File));
        assert_eq!(*state.good.as_ref().unwrap().value(), 3);
        assert!(!state.enter(&Judgement::Old));
    }
}
