use crate::keep::Keep;
use crate::time::{Clock, millis, timeouts_ms};
use crate::{Dialect, Limits};
use docent_proto::Code;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Settings of a server. See [`Builder`](crate::Builder) for the meaning of the fields.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) tick: Duration,
    pub(crate) session_timeouts: Option<(Duration, Duration)>,
    pub(crate) container_check: Duration,
    pub(crate) limits: Limits,
    pub(crate) journal: bool,
    pub(crate) zxid_in_events: bool,
    pub(crate) ttl_nodes: bool,
    pub(crate) dialect: Dialect,
    pub(crate) super_user: Option<SuperUser>,
    pub(crate) sasl_users: SaslUsers,
    pub(crate) require_sasl: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Option<Clock>,
    pub(crate) keep: Option<Keep>,
    pub(crate) words: Words,
}

/// The four-letter words that the server answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Words {
    #[default]
    All,
    Only(BTreeSet<String>),
}

impl Words {
    /// Creates the setting from a list of words, in which `*` means all words.
    pub(crate) fn listed(words: BTreeSet<String>) -> Self {
        if words.contains("*") { Self::All } else { Self::Only(words) }
    }

    /// Returns whether the server answers `word`. It always answers `srvr`, which ZooKeeper's own scripts
    /// need.
    pub(crate) fn allow(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(words) => word == "srvr" || words.contains(word),
        }
    }
}

/// Digest of the name and password of the super user.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SuperUser(pub(crate) String);

// The digest is an unsalted hash of a password, so it is never printed.
impl std::fmt::Debug for SuperUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SuperUser(..)")
    }
}

/// Names and passwords of the users that SASL accepts.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SaslUsers(pub(crate) BTreeMap<String, String>);

impl SaslUsers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn password(&self, user: &str) -> Option<&str> {
        self.0.get(user).map(String::as_str)
    }
}

// Passwords are never printed.
impl std::fmt::Debug for SaslUsers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
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
            dialect: Dialect::default(),
            super_user: None,
            sasl_users: SaslUsers::default(),
            require_sasl: false,
            seed: None,
            clock: None,
            keep: None,
            words: Words::All,
        }
    }
}

impl Config {
    /// Returns the tick in milliseconds, at least 1, because expiry is counted in whole ticks.
    pub(crate) fn tick_ms(&self) -> i64 {
        millis(self.tick).max(1)
    }

    /// Returns the code by which the server refuses an authentication with SASL.
    pub(crate) fn refusal(&self, code: Code) -> Code {
        if self.require_sasl { Code::SESSION_CLOSED_REQUIRE_SASL_AUTH } else { code }
    }

    /// Returns whether clients may create nodes with a time to live. Keeper has no setting for it.
    pub(crate) fn allows_ttl(&self) -> bool {
        self.ttl_nodes || self.dialect == Dialect::Keeper2026
    }

    /// Returns the initial minimum and maximum session timeout, in milliseconds.
    pub(crate) fn timeouts_ms(&self) -> (i32, i32) {
        match self.session_timeouts {
            Some((min, max)) => timeouts_ms(min, max),
            None => timeouts_ms(self.tick.saturating_mul(2), self.tick.saturating_mul(20)),
        }
    }
}
