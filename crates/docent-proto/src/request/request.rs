use super::{Create, OpCode, WatchKind, WatchMode, Watches};
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
    /// Check that a node exists with a version. Clients send it in a multi only.
    Check {
        /// The node.
        path: String,
        /// Version it must have; −1 for any.
        version: i32,
    },
    /// Several writes, all or none.
    Multi(Vec<MultiOp>),
    /// Several reads in one request.
    MultiRead(Vec<MultiOp>),
    /// Change of the ensemble's members, which servers refuse unless they are told to allow it.
    Reconfig {
        /// Servers to add; `None` is null.
        joining: Option<String>,
        /// Servers to take away; `None` is null.
        leaving: Option<String>,
        /// All servers there are to be, in place of the two above; `None` is null.
        members: Option<String>,
        /// Version the configuration must have; −1 for any.
        config: i64,
    },
    /// Check that a watch is set on a node.
    CheckWatches {
        /// The node.
        path: String,
        /// Kind of the watch.
        kind: WatchKind,
    },
    /// Remove watches from a node.
    RemoveWatches {
        /// The node.
        path: String,
        /// Kind of the watches.
        kind: WatchKind,
    },
    /// Set a watch that stays on a node, which need not exist.
    AddWatch {
        /// The node.
        path: String,
        /// Mode of the watch.
        mode: WatchMode,
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
    /// Watches of all modes set again after a reconnect.
    SetWatches2 {
        /// Those that come true once.
        once: Watches,
        /// Nodes with a watch of the mode [`WatchMode::Persistent`].
        persistent: Vec<String>,
        /// Nodes with a watch of the mode [`WatchMode::PersistentRecursive`].
        recursive: Vec<String>,
    },
    /// Step of an authentication by SASL.
    Sasl {
        /// The token; `None` is null.
        token: Option<Bytes>,
    },
    /// Ephemeral nodes of the session.
    GetEphemerals {
        /// Start of the paths that are asked for; empty or `/` for all.
        prefix: String,
    },
    /// Number of the nodes below a node, children and theirs alike.
    GetAllChildrenNumber {
        /// The node.
        path: String,
    },
    /// Identities of the client.
    WhoAmI,
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
            Self::Check { .. } => OpCode::Check,
            Self::Multi(_) => OpCode::Multi,
            Self::MultiRead(_) => OpCode::MultiRead,
            Self::Reconfig { .. } => OpCode::Reconfig,
            Self::CheckWatches { .. } => OpCode::CheckWatches,
            Self::RemoveWatches { .. } => OpCode::RemoveWatches,
            Self::AddWatch { .. } => OpCode::AddWatch,
            Self::Auth { .. } => OpCode::Auth,
            Self::SetWatches(_) => OpCode::SetWatches,
            Self::SetWatches2 { .. } => OpCode::SetWatches2,
            Self::Sasl { .. } => OpCode::Sasl,
            Self::GetEphemerals { .. } => OpCode::GetEphemerals,
            Self::GetAllChildrenNumber { .. } => OpCode::GetAllChildrenNumber,
            Self::WhoAmI => OpCode::WhoAmI,
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
            | Self::Check { path, .. }
            | Self::CheckWatches { path, .. }
            | Self::RemoveWatches { path, .. }
            | Self::AddWatch { path, .. }
            | Self::GetAllChildrenNumber { path } => Some(path),
            Self::Ping
            | Self::Multi(_)
            | Self::MultiRead(_)
            | Self::Reconfig { .. }
            | Self::Auth { .. }
            | Self::SetWatches(_)
            | Self::SetWatches2 { .. }
            | Self::Sasl { .. }
            | Self::GetEphemerals { .. }
            | Self::WhoAmI
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
            | Self::Check { .. }
            | Self::Reconfig { .. }
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
            | Self::CheckWatches { .. }
            | Self::RemoveWatches { .. }
            | Self::AddWatch { .. }
            | Self::Auth { .. }
            | Self::SetWatches(_)
            | Self::SetWatches2 { .. }
            | Self::Sasl { .. }
            | Self::GetEphemerals { .. }
            | Self::GetAllChildrenNumber { .. }
            | Self::WhoAmI => false,
        }
    }

    /// Bytes of the paths and data it carries: nearly all of a large request's size.
    pub fn payload_len(&self) -> usize {
        match self {
            Self::Create(create) => create.payload_len(),
            Self::SetData { path, data, .. } => path.len() + data.as_ref().map_or(0, Bytes::len),
            Self::Multi(ops) | Self::MultiRead(ops) => ops.iter().map(MultiOp::payload_len).sum(),
            Self::SetWatches(watches) => watches.payload_len(),
            Self::SetWatches2 { once, persistent, recursive } => {
                once.payload_len() + persistent.iter().chain(recursive).map(String::len).sum::<usize>()
            }
            Self::Reconfig { joining, leaving, members, .. } => {
                [joining, leaving, members].into_iter().flatten().map(String::len).sum()
            }
            Self::Sasl { token } => token.as_ref().map_or(0, Bytes::len),
            Self::GetEphemerals { prefix } => prefix.len(),
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
