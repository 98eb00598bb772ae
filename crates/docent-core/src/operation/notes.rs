use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most sessions that are remembered: the servers keep one that was given up for a timeout at most.
const ENOUGH: usize = 16;

/// Notes for the report of a client's shutdown.
#[derive(Debug, Default)]
pub(crate) struct ShutdownNotes(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// Kinds of nodes, by their full paths.
    kinds: HashMap<String, &'static str>,
    /// Kinds and full paths of the guards that were held on when their time was over.
    held_on: Vec<(&'static str, String)>,
    /// Sessions that were given up and are not known to be over, each with the nodes that it owned.
    abandoned: Vec<(i64, Vec<String>)>,
}

impl ShutdownNotes {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Takes note of a session that was given up.
    pub(crate) fn add_abandoned(&self, session_id: i64, owned: Vec<String>) {
        let mut notes = self.lock();
        if notes.abandoned.len() == ENOUGH {
            notes.abandoned.remove(0);
        }
        notes.abandoned.push((session_id, owned));
    }

    /// Forgets a session that was given up: it is over.
    pub(crate) fn forget_abandoned(&self, session_id: i64) {
        self.lock().abandoned.retain(|(abandoned, _)| *abandoned != session_id);
    }

    /// Forgets nodes at a path of sessions that were given up: they are gone.
    pub(crate) fn forget_nodes_at(&self, full: &str) {
        let mut notes = self.lock();
        let owned = notes.abandoned.iter_mut().map(|(_, owned)| owned);
        owned.for_each(|owned| owned.retain(|path| path != full));
    }

    /// As [`forget_nodes_at`](Self::forget_nodes_at), where the node of another session is at the path by
    /// now.
    pub(crate) fn forget_nodes_before(&self, full: &str, owner: i64) {
        let mut notes = self.lock();
        let others = notes.abandoned.iter_mut().filter(|(abandoned, _)| *abandoned != owner);
        others.for_each(|(_, owned)| owned.retain(|path| path != full));
    }

    pub(crate) fn abandoned(&self) -> Vec<(i64, Vec<String>)> {
        self.lock().abandoned.clone()
    }
}
