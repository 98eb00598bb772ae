use bytes::Bytes;
use docent_proto::{Acl, Stat};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a node's life may end, other than by a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Persistent,
    /// Deleted when this session ends.
    Ephemeral(i64),
    /// Deleted when it has lost its last child.
    Container,
    /// Deleted when it has no child and its data was not set for this many milliseconds.
    Ttl(i64),
}

impl Lifetime {
    /// Returns the session that owns the node; 0 for all other nodes, including containers and nodes with a
    /// time to live.
    pub(crate) fn owner(self) -> i64 {
        if let Self::Ephemeral(session) = self { session } else { 0 }
    }

    /// Maximum time to live. ZooKeeper stores it in five bytes of the owner's id.
    pub(crate) const LONGEST_TTL_MS: i64 = 0xff_ffff_ffff;

    /// Returns whether the server may delete the node on its own.
    pub(crate) fn is_reapable(self) -> bool {
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
    /// Number of children ever created, and therefore the number of the next sequential child.
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

    /// Returns whether the server should delete the node.
    pub(crate) fn is_done(&self, now: i64) -> bool {
        let may_end = match self.lifetime {
            Lifetime::Persistent | Lifetime::Ephemeral(_) => false,
            Lifetime::Container => self.creates > 0,
            Lifetime::Ttl(ttl) => now.saturating_sub(self.mtime) > ttl,
        };
        may_end && self.children.is_empty()
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
            // Clients count deletions too: each child that was created and no longer exists was deleted once.
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
