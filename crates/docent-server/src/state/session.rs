use super::acl::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A session.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) password: [u8; 16],
    pub(crate) timeout_ms: i32,
    /// End of the tick in which it ends unless it is touched, in milliseconds.
    expires_at: i64,
    /// Identities of the client on its present link.
    pub(crate) identities: Vec<Identity>,
    pub(crate) ephemerals: BTreeSet<String>,
    pub(crate) attached: bool,
    /// The member that attached it last, as the leader knows.
    pub(crate) owner: u32,
    pub(crate) events_sent: u64,
}

impl Session {
    pub(crate) fn timeout(&self) -> Duration {
        wire_timeout(self.timeout_ms)
    }
}

/// A timeout that was granted, which is never negative.
pub(crate) fn wire_timeout(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::from(timeout_ms.unsigned_abs()))
}

/// The sessions by their id, and the time at which each ends.
#[derive(Clone)]
pub(crate) struct Sessions {
    sessions: BTreeMap<i64, Session>,
    tick_ms: i64,
    last_id: i64,
}

impl Sessions {
    /// The ids of sessions count up from the time, so that servers that follow each other do not give out the
    /// same one.
    pub(crate) fn new(tick_ms: i64, now: i64) -> Self {
        const ID_BITS: i64 = 0x00ff_ffff_ffff_ffff;
        Self { sessions: BTreeMap::new(), tick_ms, last_id: now.wrapping_shl(16) & ID_BITS }
    }

    /// Opens a session and returns its id.
    pub(crate) fn open(&mut self, timeout_ms: i32, password: [u8; 16], now: i64) -> i64 {
        self.last_id += 1;
        let session = Session {
            password,
            timeout_ms,
            expires_at: self.bucket(now, timeout_ms),
            identities: Vec::new(),
            ephemerals: BTreeSet::new(),
            attached: false,
            owner: 0,
            events_sent: 0,
        };
        self.sessions.insert(self.last_id, session);
        self.last_id
    }

    /// Lets a session live for `timeout_ms` from now, whether that is longer or shorter than before.
    pub(crate) fn touch(&mut self, id: i64, timeout_ms: i32, now: i64) {
        let expires_at = self.bucket(now, timeout_ms);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.expires_at = expires_at;
        }
    }

    /// Gives every session a full timeout.
    pub(crate) fn touch_all(&mut self, now: i64) {
        let all: Vec<_> = self.sessions.iter().map(|(id, session)| (*id, session.timeout_ms)).collect();
        for (id, timeout_ms) in all {
            self.touch(id, timeout_ms, now);
        }
    }

    /// Sessions that were not touched in time, in the order of their ids.
    pub(crate) fn overdue(&self, now: i64) -> Vec<i64> {
        self.sessions.iter().filter(|(_, session)| session.expires_at <= now).map(|(id, _)| *id).collect()
    }

    /// Time is cut into ticks, and a session ends at the end of the tick in which its timeout does.
    fn bucket(&self, now: i64, timeout_ms: i32) -> i64 {
        (now.saturating_add(i64::from(timeout_ms)) / self.tick_ms)
            .saturating_add(1)
            .saturating_mul(self.tick_ms)
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<Session> {
        self.sessions.remove(&id)
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: i64) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// Identities of the client of a session.
    pub(crate) fn identities(&self, id: i64) -> &[Identity] {
        self.get(id).map_or(&[], |session| &session.identities)
    }

    pub(crate) fn ids(&self) -> Vec<i64> {
        self.sessions.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }
}
