//! Changes without a request: sessions and containers end.

use super::commit::Commit;
use super::{Effects, State};
use crate::journal::{EndCause, TransactionKind};

impl State {
    /// Ends a session and deletes its ephemeral nodes in one transaction. False when there is no such
    /// session.
    pub(crate) fn end_session(&mut self, id: i64, cause: EndCause, now: i64, effects: &mut Effects) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let (ephemerals, timeout) = (std::mem::take(&mut session.ephemerals), session.timeout());
        let commit = Commit { zxid: self.next_zxid(now), session: id, now };
        self.record(commit, TransactionKind::SessionEnded { cause, timeout }, "", 0);
        for path in &ephemerals {
            self.remove_node(commit, path, &mut effects.events);
        }
        self.watches.remove_session(id);
        self.sessions.remove(id);
        effects.ended.push(id);
        true
    }

    /// Puts the end of a session off by `timeout_ms`, the timeout of the link that was heard from.
    pub(crate) fn touch(&mut self, id: i64, timeout_ms: i32, now: i64) {
        self.sessions.touch(id, timeout_ms, now);
    }

    /// Ends a session from outside.
    pub(crate) fn expire(&mut self, id: i64, now: i64, effects: &mut Effects) -> bool {
        let existed = self.end_session(id, EndCause::Forced, now, effects);
        self.count_events(&effects.events);
        existed
    }

    /// Ends the sessions that were silent for too long.
    pub(crate) fn expire_overdue(&mut self, now: i64, effects: &mut Effects) {
        if self.frozen {
            return;
        }
        for id in self.sessions.overdue(now) {
            self.end_session(id, EndCause::Expired, now, effects);
        }
        self.count_events(&effects.events);
    }

    /// True while no session expires.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Stops the expiry of sessions, as in an ensemble without a leader.
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Lets sessions expire again; each has its full timeout from now.
    pub(crate) fn thaw(&mut self, now: i64) {
        self.frozen = false;
        self.sessions.touch_all(now);
    }

    /// Deletes the containers that have lost their last child, each in a transaction of its own.
    pub(crate) fn reap_containers(&mut self, now: i64, effects: &mut Effects) {
        if self.frozen {
            return;
        }
        let is_done = |path: &String| {
            self.tree.get(path).is_some_and(|node| node.children.is_empty() && node.creates > 0)
        };
        let done: Vec<String> = self.containers.iter().filter(|path| is_done(path)).cloned().collect();
        for path in done {
            let commit = Commit { zxid: self.next_zxid(now), session: 0, now };
            self.remove_node(commit, &path, &mut effects.events);
        }
        self.count_events(&effects.events);
    }
}
