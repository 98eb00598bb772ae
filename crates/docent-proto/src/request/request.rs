use super::{Create, OpCode, WatchKind, Watches};
use crate::Acl;
use crate::multi::MultiOp;
use bytes::Bytes;
use std::fmt;

/// Requests that a client can make of a server once it is connected.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// Create a node.
    Create(Create),
    /// Delete a node.
    Delete {
        /// The node.
        path: String,
        /// Version it must have; −1 for any.
        version: i32,
    },
    /// Stat of a node. The watch is left on a missing node too.
    Exists {
        /// The node.
        path: String,
        /// Leave a watch.
        watch: bool,
    },
    /// Data of a node. No watch is left on a missing node.
    GetData {
        /// The node.
        path: String,
        /// Leave a watch.
        watch: bool,
    },
    /// Set a node's data.
    SetData {
        /// The node.
        path: String,
        /// The data; `None` is null.
        data: Option<Bytes>,
        /// Version it must have; −1 for any.
        version: i32,
    },
    /// Read the access control list.
    GetAcl {
        /// The node.
        path: String,
    },
    /// Set the access control list.
    SetAcl {
        /// The node.
        path: String,
        /// The new access control list.
        acl: Vec<Acl>,
        /// Version of the list; −1 for any.
        version: i32,
    },
    /// Names of the children.
    GetChildren {
        /// The node.
        path: String,
        /// Leave a watch.
        watch: bool,
    },
    /// Names of the children and the node's stat.
    GetChildren2 {
        /// The node.
        path: String,
        /// Leave a watch.
        watch: bool,
    },
    /// Wait until the server has what the leader had when the request reached it.
    Sync {
        /// A path, which servers do not look at.
        path: String,
    },
    /// Sign of life.
    Ping,
    /// Several writes, all or none.
    Multi(Vec<MultiOp>),
    /// Several reads in one request.
    MultiRead(Vec<MultiOp>),
    /// Remove watches from a node.
    RemoveWatches {
        /// The node.
        path: String,
        /// Kind of the watches.
        kind: WatchKind,
    },
    /// Credentials.
    Auth {
        /// Scheme by which they are checked.
        scheme: String,
        /// The credentials themselves.
        credentials: Bytes,
    },
    /// Watches set again after a reconnect.
    SetWatches(Watches),
    /// End of the session.
    CloseSession,
}

impl Request {
    /// The operation it is sent as.
    pub fn op(&self) -> OpCode {
        match self {
            Self::Create(create) => create.kind.op(),
            Self::Delete { .. } => OpCode::Delete,
            Self::Exists { .. } => OpCode::Exists,
            Self::GetData { .. } => OpCode::GetData,
            Self::SetData { .. } => OpCode::SetData,
            Self::GetAcl { .. } => OpCode::GetAcl,
            Self::SetAcl { .. } => OpCode::SetAcl,
            Self::GetChildren { .. } => OpCode::GetChildren,
            Self::GetChildren2 { .. } => OpCode::GetChildren2,
            Self::Sync { .. } => OpCode::Sync,
            Self::Ping => OpCode::Ping,
            Self::Multi(_) => OpCode::Multi,
            Self::MultiRead(_) => OpCode::MultiRead,
            Self::RemoveWatches { .. } => OpCode::RemoveWatches,
            Self::Auth { .. } => OpCode::Auth,
            Self::SetWatches(_) => OpCode::SetWatches,
            Self::CloseSession => OpCode::CloseSession,
        }
    }

    /// The node it is about, for operations on one node.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Create(create) => Some(&create.path),
            Self::Delete { path, .. }
            | Self::Exists { path, .. }
            | Self::GetData { path, .. }
            | Self::SetData { path, .. }
            | Self::GetAcl { path }
            | Self::SetAcl { path, .. }
            | Self::GetChildren { path, .. }
            | Self::GetChildren2 { path, .. }
            | Self::Sync { path }
            | Self::RemoveWatches { path, .. } => Some(path),
            Self::Ping
            | Self::Multi(_)
            | Self::MultiRead(_)
            | Self::Auth { .. }
            | Self::SetWatches(_)
            | Self::CloseSession => None,
        }
    }

    /// True when the servers agree on it in a quorum: its acknowledgement proves that the session existed
    /// then.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Create(_)
            | Self::Delete { .. }
            | Self::SetData { .. }
            | Self::SetAcl { .. }
            | Self::CloseSession => true,
            Self::Multi(ops) => !ops.is_empty(),
            Self::Exists { .. }
            | Self::GetData { .. }
            | Self::GetAcl { .. }
            | Self::GetChildren { .. }
            | Self::GetChildren2 { .. }
            | Self::Sync { .. }
            | Self::Ping
            | Self::MultiRead(_)
            | Self::RemoveWatches { .. }
            | Self::Auth { .. }
            | Self::SetWatches(_) => false,
        }
    }

    /// Bytes of the paths and data it carries: nearly all of a large request's size.
    pub fn payload_len(&self) -> usize {
        match self {
            Self::Create(create) => create.payload_len(),
            Self::SetData { path, data, .. } => path.len() + data.as_ref().map_or(0, Bytes::len),
            Self::Multi(ops) | Self::MultiRead(ops) => ops.iter().map(MultiOp::payload_len).sum(),
            Self::SetWatches(watches) => {
                [&watches.data, &watches.exist, &watches.child].into_iter().flatten().map(String::len).sum()
            }
            Self::Auth { scheme, credentials } => scheme.len() + credentials.len(),
            other => other.path().map_or(0, str::len),
        }
    }
}

// Payloads and credentials are never printed.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.op())?;
        match self.path() {
            Some(path) => write!(f, "({path})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateMode, MultiResult};

    #[test]
    fn neither_payloads_nor_digests_are_printed() {
        let secret = Bytes::from_static(b"planted");
        let acl = vec![Acl {
            permissions: crate::Permissions::ALL,
            scheme: "digest".into(),
            id: "user:planted".into(),
        }];
        let create = Create::new("/a".into(), secret.clone(), acl.clone(), CreateMode::Persistent, 0);
        let set = MultiOp::SetData { path: "/a".into(), data: Some(secret.clone()), version: -1 };
        let read = MultiResult::Data { data: Some(secret), stat: crate::Stat::default().into() };
        let printed = format!("{acl:?} {create:?} {set:?} {read:?} {:?}", Request::Create(create.clone()));
        assert!(!printed.contains("planted"), "{printed}");
    }
}
