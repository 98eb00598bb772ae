use super::change::MemberChanges;
use super::group::Group;
use super::peer::Peer;
use docent_core::{ChildrenCache, Error};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Live list of the members of a group. Created by [`Membership::members`](super::Membership::members). Cheap
/// to clone; all clones share a cache.
///
/// While the servers are unreachable, it still shows the last known members, and [`is_stale`](Self::is_stale)
/// returns true.
///
/// # On drop
/// The last list or stream of a [`Membership`](super::Membership) removes its cache and the watches at the
/// server. A list does not keep the client open.
#[derive(Clone)]
pub struct Members {
    group: Arc<Group>,
    cache: Arc<ChildrenCache>,
}

impl Members {
    pub(super) fn new(group: Arc<Group>, cache: Arc<ChildrenCache>) -> Self {
        Self { group, cache }
    }

    /// Returns the current members in the order of ids, without I/O.
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

    /// Returns a member by its id.
    pub fn get(&self, id: &str) -> Option<Peer> {
        let known = self.cache.current();
        if let Some(node) = known.get(id) {
            return Some(Peer::new(&id.into(), node));
        }
        self.group.own().get_key_value(id).map(|(id, data)| Peer::absent(id, data.clone()))
    }

    /// Returns true if the list may be out of date:
    ///
    /// - from a lost connection until everything was read again,
    /// - while the group cannot be listed,
    /// - once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.cache.is_stale()
    }

    /// Returns for how long the list has been [stale](Self::is_stale), or `None` if it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.cache.stale_for()
    }

    /// Returns the error with which the servers refuse to list the group, or `None` if there is none. The
    /// listing is retried continuously.
    pub fn last_error(&self) -> Option<Error> {
        self.cache.last_error()
    }

    /// Returns a stream of the current members, each as joined, and then their changes. Each stream is
    /// independent.
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
