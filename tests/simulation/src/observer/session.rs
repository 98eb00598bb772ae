use bytes::Bytes;
use docent_proto::{ConnectRequest, ConnectResponse, EventKind, Request, WatchEvent, WatchMode, Watches};
use std::collections::{BTreeMap, BTreeSet};

/// A session, as its client knows it: what the client sets again on the next link.
#[derive(Debug, Default)]
pub(super) struct ObserverSession {
    id: i64,
    password: Bytes,
    /// The latest transaction in a reply's header.
    pub(super) newest: i64,
    stays: BTreeMap<String, WatchMode>,
    data: BTreeSet<String>,
    exist: BTreeSet<String>,
    child: BTreeSet<String>,
}

impl ObserverSession {
    /// The handshake that opens or resumes the session.
    pub(super) fn connect(&self, timeout_ms: i32) -> ConnectRequest {
        match self.id {
            0 => ConnectRequest::new_session(timeout_ms),
            id => ConnectRequest {
                last_zxid_seen: self.newest,
                timeout_ms,
                session_id: id,
                password: self.password.clone(),
                read_only: Some(false),
            },
        }
    }

    /// Applies the server's response to the handshake. Returns false if the session has ended.
    pub(super) fn connected(&mut self, response: &ConnectResponse) -> bool {
        if response.timeout_ms <= 0 {
            *self = Self::default();
            return false;
        }
        (self.id, self.password) = (response.session_id, response.password.clone());
        true
    }

    /// The watches to set again.
    pub(super) fn again(&self) -> Request {
        let of_mode = |wanted| {
            let those = self.stays.iter().filter(move |(_, mode)| **mode == wanted);
            those.map(|(path, _)| path.clone()).collect()
        };
        let all = |paths: &BTreeSet<String>| paths.iter().cloned().collect();
        let once = Watches {
            relative_zxid: self.newest,
            data: all(&self.data),
            exist: all(&self.exist),
            child: all(&self.child),
        };
        Request::SetWatches2 {
            once,
            persistent: of_mode(WatchMode::Persistent),
            recursive: of_mode(WatchMode::PersistentRecursive),
        }
    }

    /// Paths with a persistent watch.
    pub(super) fn stays(&self) -> impl Iterator<Item = &String> {
        self.stays.keys()
    }

    /// Returns true if there is no one-shot watch on a path.
    pub(super) fn is_free(&self, path: &str) -> bool {
        ![&self.data, &self.exist, &self.child].into_iter().any(|paths| paths.contains(path))
    }

    /// Notes a watch that was set. `found` is true if its node exists.
    pub(super) fn set(&mut self, request: &Request, found: bool) {
        match request {
            Request::AddWatch { path, mode } => drop(self.stays.insert(path.clone(), *mode)),
            Request::Exists { path, .. } if !found => drop(self.exist.insert(path.clone())),
            Request::Exists { path, .. } | Request::GetData { path, .. } if found => {
                self.data.insert(path.clone());
            }
            Request::GetChildren { path, .. } if found => drop(self.child.insert(path.clone())),
            _ => {}
        }
    }

    /// Forgets the persistent watch on a path.
    pub(super) fn removed(&mut self, path: &str) {
        self.stays.remove(path);
    }

    /// Forgets the watches that an event used up.
    pub(super) fn note_event(&mut self, event: &WatchEvent) {
        if event.kind != EventKind::ChildrenChanged {
            self.data.remove(&event.path);
            self.exist.remove(&event.path);
        }
        if matches!(event.kind, EventKind::ChildrenChanged | EventKind::Deleted) {
            self.child.remove(&event.path);
        }
    }
}
