use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Maximum number of remembered sessions. The servers keep a session for a few timeouts at most.
const ENOUGH: usize = 16;

/// Notes about the sessions of a client and their nodes: kinds of nodes, and what may be left of them.
#[derive(Debug, Default)]
pub(crate) struct SessionNotes {
    notes: Mutex<Notes>,
    /// Notified when a session has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    /// Kinds of nodes, by their full paths.
    kinds: HashMap<String, &'static str>,
    /// Kinds and full paths of the guards that were still held when their time was up.
    still_held: Vec<(&'static str, String)>,
    /// Sessions that have ended for the client but are not certain to have ended at the servers, each with
    /// the nodes that it owned.
    lingering: Vec<(i64, Vec<String>)>,
    /// Such sessions that have ended in the meantime.
    ended: Vec<i64>,
}

impl SessionNotes {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_kinds(&self, kinds: impl IntoIterator<Item = (String, &'static str)>) {
        self.lock().kinds.extend(kinds);
    }

    /// Returns the kind of a node, if it is known.
    pub(crate) fn kind(&self, full: &str) -> &'static str {
        let known = self.lock().kinds.get(full).copied();
        let name = full.rsplit('/').next().unwrap_or_default();
        // Names with this prefix are those of places in lines.
        known.unwrap_or(if name.starts_with("_c_") { "ticket" } else { "node" })
    }

    pub(crate) fn add_still_held(&self, kind: &'static str, full: String) {
        self.lock().still_held.push((kind, full));
    }

    pub(crate) fn still_held(&self) -> Vec<(&'static str, String)> {
        self.lock().still_held.clone()
    }

    /// Records a session that has ended for the client and may live on. Returns false if it was already
    /// recorded.
    pub(crate) fn add_lingering(&self, session_id: i64, owned: Vec<String>) -> bool {
        let mut notes = self.lock();
        let noted = notes.lingering.iter().any(|(noted, _)| *noted == session_id);
        if noted || notes.ended.contains(&session_id) {
            return false;
        }
        if notes.lingering.len() == ENOUGH {
            notes.lingering.remove(0);
        }
        notes.lingering.push((session_id, owned));
        true
    }

    /// Records that such a session has ended at the servers.
    pub(crate) fn set_ended(&self, session_id: i64) {
        let mut notes = self.lock();
        notes.lingering.retain(|(noted, _)| *noted != session_id);
        if notes.ended.len() == ENOUGH {
            notes.ended.remove(0);
        }
        notes.ended.push(session_id);
        drop(notes);
        self.changed.notify_waiters();
    }

    /// Returns true if such a session has ended at the servers.
    pub(crate) fn has_ended(&self, session_id: i64) -> bool {
        self.lock().ended.contains(&session_id)
    }

    /// Waits until such a session has ended at the servers.
    pub(crate) async fn wait_ended(&self, session_id: i64) {
        loop {
            let changed = self.changed.notified();
            if self.has_ended(session_id) {
                return;
            }
            changed.await;
        }
    }

    /// Forgets the nodes of such sessions at a path, because they were deleted.
    pub(crate) fn forget_nodes_at(&self, full: &str) {
        let mut notes = self.lock();
        let owned = notes.lingering.iter_mut().map(|(_, owned)| owned);
        owned.for_each(|owned| owned.retain(|path| path != full));
    }

    /// Like [`forget_nodes_at`](Self::forget_nodes_at), if a node of another session is now at the path.
    pub(crate) fn forget_nodes_before(&self, full: &str, owner: i64) {
        let mut notes = self.lock();
        let other_sessions = notes.lingering.iter_mut().filter(|(noted, _)| *noted != owner);
        other_sessions.for_each(|(_, owned)| owned.retain(|path| path != full));
    }

    /// Returns the sessions that have ended for the client and may live on, each with the nodes that it
    /// owned.
    pub(crate) fn lingering(&self) -> Vec<(i64, Vec<String>)> {
        self.lock().lingering.clone()
    }
}
