use crate::Limits;
use crate::keep::Keep;
use crate::time::{Clock, millis, timeouts_ms};
use std::collections::BTreeSet;
use std::time::Duration;

/// Settings that a server is started with; see [`Builder`](crate::Builder) for the meaning of the fields.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) tick: Duration,
    pub(crate) session_timeouts: Option<(Duration, Duration)>,
    pub(crate) container_check: Duration,
    pub(crate) limits: Limits,
    pub(crate) journal: bool,
    pub(crate) zxid_in_events: bool,
    pub(crate) ttl_nodes: bool,
    pub(crate) super_user: Option<SuperUser>,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Option<Clock>,
    pub(crate) keep: Option<Keep>,
    pub(crate) words: Words,
}

/// Four-letter words that are answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Words {
    #[default]
    All,
    Only(BTreeSet<String>),
}

impl Words {
    /// The words of a list, in which `*` is all of them.
    pub(crate) fn listed(words: BTreeSet<String>) -> Self {
        if words.contains("*") { Self::All } else { Self::Only(words) }
    }

    /// True for a word that is answered: `srvr` in each case, as ZooKeeper's own scripts need it.
    pub(crate) fn allow(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(words) => word == "srvr" || words.contains(word),
        }
    }
}

/// Digest of the user and password of the super user.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SuperUser(pub(crate) String);

// An unsalted hash of a password is never printed.
impl std::fmt::Debug for SuperUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SuperUser(..)")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tick: Duration::from_secs(2),
            session_timeouts: None,
            container_check: Duration::from_secs(60),
            limits: Limits::default(),
            journal: false,
            zxid_in_events: false,
            ttl_nodes: false,
            super_user: None,
            seed: None,
            clock: None,
            keep: None,
            words: Words::All,
        }
    }
}

impl Config {
    /// Expiry is counted in whole ticks, so a tick is never shorter than a millisecond.
    pub(crate) fn tick_ms(&self) -> i64 {
        millis(self.tick).max(1)
    }

    /// The shortest and the longest session timeout granted at the start, in milliseconds.
    pub(crate) fn timeouts_ms(&self) -> (i32, i32) {
        match self.session_timeouts {
            Some((min, max)) => timeouts_ms(min, max),
            None => timeouts_ms(self.tick.saturating_mul(2), self.tick.saturating_mul(20)),
        }
    }
}
