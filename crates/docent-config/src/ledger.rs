use crate::settings::Settings;
use crate::{Origin, Rejection, Revision, Snapshot};
use bytes::Bytes;
use docent_core::planted;
use std::sync::Arc;

/// State of a value, as shown to its subscriptions. Its numbers tell them what is news.
pub(crate) struct State<T> {
    /// The last good value, and how many there were before it.
    pub(crate) good: Option<Arc<Snapshot<T>>>,
    pub(crate) good_number: u64,
    /// State of the value at the servers.
    pub(crate) latest: Latest,
    pub(crate) latest_number: u64,
    /// How many values were refused.
    pub(crate) refused: u64,
    /// How often the servers were restored from an older copy and values began anew.
    pub(crate) rollbacks: u64,
    /// The local file was read, or there is none.
    pub(crate) file_read: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Latest {
    Unknown,
    /// The last good value.
    Good,
    Missing,
    Refused(Rejection),
}

/// Memory of the newest value that the servers told. Decides what is shown: nothing older than what was shown
/// before.
pub(crate) struct Ledger<T> {
    settings: Settings<T>,
    /// The newest revision that the servers told, good or not.
    newest: Option<Revision>,
    rollbacks: u64,
}

/// Judgement of a node that the servers told.
pub(crate) enum Entry<T> {
    Good(Arc<Snapshot<T>>),
    Missing,
    Refused(Rejection),
    /// It is older than what was shown.
    Old,
}

impl<T: 'static> Ledger<T> {
    pub(crate) fn new(settings: Settings<T>, rollbacks: u64) -> Self {
        Self { settings, newest: None, rollbacks }
    }

    /// How often the client had found the servers restored from an older copy when the newest value came.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.rollbacks
    }

    /// Judges what the servers have: a revision with its data, or nothing. `rollbacks` counts how often the
    /// client found them restored from an older copy.
    pub(crate) fn judge(&mut self, found: Option<(Revision, &Bytes)>, rollbacks: u64) -> Entry<T> {
        let Some((revision, data)) = found else { return Entry::Missing };
        let goes_back = self.newest.is_some_and(|newest| revision.mzxid < newest.mzxid);
        // Values never go back, but for a restore of the servers from an older copy, which `rollbacks`
        // counts.
        if goes_back && self.rollbacks == rollbacks && !planted!(OlderAfterNewer) {
            return Entry::Old;
        }
        self.rollbacks = rollbacks;
        self.newest = Some(revision);
        match self.settings.read(data) {
            Ok(value) => Entry::Good(Arc::new(Snapshot::new(value, revision, Origin::Server))),
            Err(refusal) => Entry::Refused(refusal.of(revision)),
        }
    }
}

impl<T> State<T> {
    pub(crate) fn new(default: Option<Arc<Snapshot<T>>>, file_read: bool, rollbacks: u64) -> Self {
        Self {
            good: default,
            good_number: 0,
            latest: Latest::Unknown,
            latest_number: 0,
            refused: 0,
            rollbacks,
            file_read,
        }
    }

    /// True when it changed anything.
    pub(crate) fn enter(&mut self, entry: &Entry<T>) -> bool {
        match entry {
            Entry::Good(snapshot) => {
                self.good = Some(Arc::clone(snapshot));
                self.good_number += 1;
                self.latest = Latest::Good;
            }
            Entry::Missing => self.latest = Latest::Missing,
            Entry::Refused(refusal) => {
                self.refused += 1;
                self.latest = Latest::Refused(refusal.clone());
            }
            Entry::Old => return false,
        }
        self.latest_number += 1;
        true
    }

    /// Takes what the local file had, unless the servers were faster.
    pub(crate) fn enter_file(&mut self, snapshot: Option<Arc<Snapshot<T>>>) {
        self.file_read = true;
        let told = self.good.as_ref().is_some_and(|good| good.origin() == Origin::Server);
        if let Some(snapshot) = snapshot.filter(|_| !told) {
            self.good = Some(snapshot);
            self.good_number += 1;
        }
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self {
            good: self.good.clone(),
            good_number: self.good_number,
            latest: self.latest.clone(),
            latest_number: self.latest_number,
            refused: self.refused,
            rollbacks: self.rollbacks,
            file_read: self.file_read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use std::time::SystemTime;

    fn ledger() -> Ledger<u32> {
        Ledger::new(Settings { codec: Arc::new(Json::new()), validate: None }, 0)
    }

    /// The judgement of a value: its text when it is good, else a word.
    fn judged(ledger: &mut Ledger<u32>, mzxid: i64, data: &'static str, rollbacks: u64) -> String {
        let revision = Revision { czxid: 1, mzxid, version: 0, modified: SystemTime::UNIX_EPOCH };
        match ledger.judge(Some((revision, &Bytes::from_static(data.as_bytes()))), rollbacks) {
            Entry::Good(snapshot) => snapshot.to_string(),
            Entry::Refused(_) => "refused".to_owned(),
            Entry::Missing => "missing".to_owned(),
            Entry::Old => "old".to_owned(),
        }
    }

    #[test]
    fn a_value_older_than_one_that_was_shown_or_refused_is_not_shown() {
        let mut ledger = ledger();
        assert_eq!(judged(&mut ledger, 5, "5", 0), "5");
        assert_eq!(judged(&mut ledger, 4, "4", 0), "old");
        assert_eq!(judged(&mut ledger, 7, "x", 0), "refused");
        assert_eq!(judged(&mut ledger, 6, "6", 0), "old");
        assert!(matches!(ledger.judge(None, 0), Entry::Missing));
        assert_eq!(judged(&mut ledger, 6, "6", 0), "old", "also after a deletion");
        assert_eq!(judged(&mut ledger, 8, "8", 0), "8");
    }

    #[test]
    fn servers_that_were_restored_begin_anew() {
        let mut ledger = ledger();
        assert_eq!(judged(&mut ledger, 100, "100", 0), "100");
        assert_eq!(judged(&mut ledger, 9, "9", 1), "9");
        assert_eq!(ledger.rollbacks(), 1);
        assert_eq!(judged(&mut ledger, 8, "8", 1), "old");
        assert_eq!(judged(&mut ledger, 10, "10", 1), "10");
    }

    #[test]
    fn the_file_gives_way_to_the_servers_and_the_default_to_both() {
        let snapshot = |value, origin| {
            let revision = Revision { czxid: 1, mzxid: 900, version: 0, modified: SystemTime::UNIX_EPOCH };
            Some(Arc::new(Snapshot::new(value, revision, origin)))
        };
        let mut state = State::new(Some(Arc::new(Snapshot::default_value(1_u32))), false, 0);
        state.enter_file(snapshot(2, Origin::File));
        assert_eq!((*state.good.as_ref().unwrap().value(), state.file_read), (2, true));
        let Some(server) = snapshot(3, Origin::Server) else { unreachable!() };
        assert!(state.enter(&Entry::Good(server)));
        state.enter_file(snapshot(2, Origin::File));
        assert_eq!(*state.good.as_ref().unwrap().value(), 3);
        assert!(!state.enter(&Entry::Old));
    }
}
