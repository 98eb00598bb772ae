use super::change::MemberChanges;
use super::group::Group;
use super::peer::Peer;
use docent_core::{ChildrenCache, Error};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The members of a group, live. Made by [`Membership::members`](super::Membership::members). Cheap to clone;
/// all clones share a cache.
///
/// While the servers are away it goes on to show who was there, and [`is_stale`](Self::is_stale).
///
/// # On drop
/// With the last list and stream of a [`Membership`](super::Membership) its cache goes, and the watches at
/// the server. It does not keep the client open.
#[derive(Clone)]
pub struct Members {
    group: Arc<Group>,
    cache: Arc<ChildrenCache>,
}

impl Members {
    pub(super) fn new(group: Arc<Group>, cache: Arc<ChildrenCache>) -> Self {
        Self { group, cache }
    }

    /// Members of the group now, in the order of ids, without I/O.
    pub fn current(&self) -> Vec<Peer> {
        let mut peers: BTreeMap<Arc<str>, Peer> = BTreeMap::new();
        for (id, node) in self.cache.current().iter() {
            peers.insert(Arc::clone(id), Peer::new(id, node));
        }
        for (id, data) in self.group.own().iter() {
            peers.entry(Arc::clone(id)).or_insert_with(|| Peer::absent(id, data.clone()));
        }
        peers.into_values().collect()
    }

    /// A member by its id.
    pub fn get(&self, id: &str) -> Option<Peer> {
        let known = self.cache.current();
        if let Some(node) = known.get(id) {
            return Some(Peer::new(&id.into(), node));
        }
        self.group.own().get_key_value(id).map(|(id, data)| Peer::absent(id, data.clone()))
    }

    /// True when the list may be out of date: from a lost link until everything was read again, while the
    /// group cannot be listed, and once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.cache.is_stale()
    }

    /// Time for which it has been [stale](Self::is_stale); `None` when it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.cache.stale_for()
    }

    /// Error with which the servers refuse to let the group be listed; `None` when they do not. It is tried
    /// again all the time.
    pub fn last_error(&self) -> Option<Error> {
        self.cache.last_error()
    }

    /// Members that are there, each as one that joins, and then their changes. Each stream is told on its
    /// own.
    pub fn changes(&self) -> MemberChanges {
        MemberChanges::new(Arc::clone(&self.group), Arc::clone(&self.cache))
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members")
            .field("path", &self.group.path)
            .field("members", &self.current().len())
            .field("stale", &self.is_stale())
            .finish_non_exhaustive()
    }
}
