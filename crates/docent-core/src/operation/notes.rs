use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Most sessions that are remembered: the servers keep one for a few timeouts at most.
const ENOUGH: usize = 16;

/// Notes about sessions of a client and their nodes: what they were, and what may be left of them.
#[derive(Debug, Default)]
pub(crate) struct SessionNotes {
    notes: Mutex<Notes>,
    /// Notified when a session is over.
    over: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    /// Kinds of nodes, by their full paths.
    kinds: HashMap<String, &'static str>,
    /// Kinds and full paths of the guards that were held on when their time was over.
    held_on: Vec<(&'static str, String)>,
    /// Sessions that have ended for the client and are not certainly over, each with the nodes that it owned.
    lingering: Vec<(i64, Vec<String>)>,
    /// Such sessions that are over by now.
    over: Vec<i64>,
}

impl SessionNotes {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_kinds(&self, kinds: impl IntoIterator<Item = (String, &'static str)>) {
        self.lock().kinds.extend(kinds);
    }

    /// The kind of a node, as far as that is known.
    pub(crate) fn kind(&self, full: &str) -> &'static str {
        let known = self.lock().kinds.get(full).copied();
        let name = full.rsplit('/').next().unwrap_or_default();
        // Protected names are those of places in lines.
        known.unwrap_or(if name.starts_with("_c_") { "ticket" } else { "node" })
    }

    pub(crate) fn add_held_on(&self, kind: &'static str, full: String) {
        self.lock().held_on.push((kind, full));
    }

    pub(crate) fn held_on(&self) -> Vec<(&'static str, String)> {
        self.lock().held_on.clone()
    }

    /// Takes note of a session that has ended for the client and may live on. False when it was noted before.
    pub(crate) fn add_lingering(&self, session_id: i64, owned: Vec<String>) -> bool {
        let mut notes = self.lock();
        let noted = notes.lingering.iter().any(|(noted, _)| *noted == session_id);
        if noted || notes.over.contains(&session_id) {
            return false;
        }
        if notes.lingering.len() == ENOUGH {
            notes.lingering.remove(0);
        }
        notes.lingering.push((session_id, owned));
        true
    }

    /// Takes note that such a session is over.
    pub(crate) fn set_over(&self, session_id: i64) {
        let mut notes = self.lock();
        notes.lingering.retain(|(noted, _)| *noted != session_id);
        if notes.over.len() == ENOUGH {
            notes.over.remove(0);
        }
        notes.over.push(session_id);
        drop(notes);
        self.over.notify_waiters();
    }

    /// True when such a session is over.
    pub(crate) fn is_over(&self, session_id: i64) -> bool {
        self.lock().over.contains(&session_id)
    }

    /// Waits until such a session is over.
    pub(crate) async fn over(&self, session_id: i64) {
        loop {
            let over = self.over.notified();
            if self.is_over(session_id) {
                return;
            }
            over.await;
        }
    }

    /// Forgets nodes at a path of such sessions: they are gone.
    pub(crate) fn forget_nodes_at(&self, full: &str) {
        let mut notes = self.lock();
        let owned = notes.lingering.iter_mut().map(|(_, owned)| owned);
        owned.for_each(|owned| owned.retain(|path| path != full));
    }

    /// As [`forget_nodes_at`](Self::forget_nodes_at), where the node of another session is at the path by
    /// now.
    pub(crate) fn forget_nodes_before(&self, full: &str, owner: i64) {
        let mut notes = self.lock();
        let others = notes.lingering.iter_mut().filter(|(noted, _)| *noted != owner);
        others.for_each(|(_, owned)| owned.retain(|path| path != full));
    }

    /// Sessions that have ended for the client and may live on, each with the nodes that it owned.
    pub(crate) fn lingering(&self) -> Vec<(i64, Vec<String>)> {
        self.lock().lingering.clone()
    }
}
