use bytes::Bytes;
use docent_proto::{Acl, Stat};
use std::collections::BTreeSet;
use std::sync::Arc;

/// End of a node's life besides a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Persistent,
    /// Goes with this session.
    Ephemeral(i64),
    /// Goes when it has lost its last child.
    Container,
    /// Goes when it has no child and so many milliseconds have passed since its data was set.
    Ttl(i64),
}

impl Lifetime {
    /// The session that owns the node; clients see 0 for containers and times to live too.
    pub(crate) fn owner(self) -> i64 {
        if let Self::Ephemeral(session) = self { session } else { 0 }
    }

    /// Longest time to live: ZooKeeper keeps it in five bytes of the owner's id.
    pub(crate) const LONGEST_TTL_MS: i64 = 0xff_ffff_ffff;

    /// True for a node that the server deletes some day by itself.
    pub(crate) fn is_watched_over(self) -> bool {
        matches!(self, Self::Container | Self::Ttl(_))
    }
}

/// A node of the tree.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) data: Option<Bytes>,
    pub(crate) acl: Arc<[Acl]>,
    pub(crate) lifetime: Lifetime,
    pub(crate) children: BTreeSet<String>,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) pzxid: i64,
    pub(crate) ctime: i64,
    pub(crate) mtime: i64,
    pub(crate) version: i32,
    pub(crate) aversion: i32,
    /// Number of children that were ever created, which the next sequential child gets.
    pub(crate) creates: i32,
}

impl Node {
    pub(crate) fn new(
        data: Option<Bytes>,
        acl: Arc<[Acl]>,
        lifetime: Lifetime,
        zxid: i64,
        time: i64,
    ) -> Self {
        Self {
            data,
            acl,
            lifetime,
            children: BTreeSet::new(),
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: time,
            mtime: time,
            version: 0,
            aversion: 0,
            creates: 0,
        }
    }

    /// True when the server is to delete the node.
    pub(crate) fn is_done(&self, now: i64) -> bool {
        let is_over = match self.lifetime {
            Lifetime::Persistent | Lifetime::Ephemeral(_) => false,
            Lifetime::Container => self.creates > 0,
            Lifetime::Ttl(ttl) => now.saturating_sub(self.mtime) > ttl,
        };
        is_over && self.children.is_empty()
    }

    pub(crate) fn stat(&self) -> Stat {
        let children = count(self.children.len());
        let counted = if planted!(WrongCversion) { self.creates } else { children };
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // Clients count deletions too: every child ever created but those still there was deleted once.
            cversion: self.creates.wrapping_mul(2).wrapping_sub(counted),
            aversion: self.aversion,
            ephemeral_owner: self.lifetime.owner(),
            data_length: count(self.data.as_ref().map_or(0, Bytes::len)),
            num_children: children,
            pzxid: self.pzxid,
        }
    }
}

fn count(value: usize) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
