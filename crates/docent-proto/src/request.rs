//! Requests of clients: their operations, numbers and frames.

mod body;

pub use body::{Create, CreateKind, WatchKind, WatchMode, Watches};

use crate::multi::MultiOp;
use crate::wire::{Reader, write_frame};
use crate::{Acl, DecodeError};
use bytes::{BufMut, Bytes};
use std::fmt;

/// Request that a client can send to a server after it has connected.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// Create a node.
    Create(Create),
    /// Delete a node.
    Delete {
        /// Path of the node.
        path: String,
        /// Required version; −1 for any.
        version: i32,
    },
    /// Get the stat of a node. A watch is set even if the node does not exist.
    Exists {
        /// Path of the node.
        path: String,
        /// Whether to set a watch.
        watch: bool,
    },
    /// Get the data of a node. No watch is set if the node does not exist.
    GetData {
        /// Path of the node.
        path: String,
        /// Whether to set a watch.
        watch: bool,
    },
    /// Set the data of a node.
    SetData {
        /// Path of the node.
        path: String,
        /// The new data; `None` is null.
        data: Option<Bytes>,
        /// Required version; −1 for any.
        version: i32,
    },
    /// Read the access control list.
    GetAcl {
        /// Path of the node.
        path: String,
    },
    /// Set the access control list.
    SetAcl {
        /// Path of the node.
        path: String,
        /// The new access control list.
        acl: Vec<Acl>,
        /// Required version of the list; −1 for any.
        version: i32,
    },
    /// Get the names of the children.
    GetChildren {
        /// Path of the node.
        path: String,
        /// Whether to set a watch.
        watch: bool,
    },
    /// Get the names of the children and the node's stat.
    GetChildren2 {
        /// Path of the node.
        path: String,
        /// Whether to set a watch.
        watch: bool,
    },
    /// Wait until the server has applied everything that the leader had applied when the request reached it.
    Sync {
        /// A path, which servers ignore.
        path: String,
    },
    /// Heartbeat.
    Ping,
    /// Check that a node exists and has a version. Clients send this only in a multi.
    Check {
        /// Path of the node.
        path: String,
        /// Required version; −1 for any.
        version: i32,
    },
    /// Several writes, all or none.
    Multi(Vec<MultiOp>),
    /// Several reads in one request.
    MultiRead(Vec<MultiOp>),
    /// Change the ensemble's members. Servers refuse this unless it is enabled.
    Reconfig {
        /// Servers to add; `None` is null.
        joining: Option<String>,
        /// Servers to remove; `None` is null.
        leaving: Option<String>,
        /// Complete list of servers, instead of the two lists above; `None` is null.
        members: Option<String>,
        /// Required version of the configuration; −1 for any.
        config: i64,
    },
    /// Check that a watch is set on a node.
    CheckWatches {
        /// Path of the node.
        path: String,
        /// Kind of the watch.
        kind: WatchKind,
    },
    /// Remove watches from a node.
    RemoveWatches {
        /// Path of the node.
        path: String,
        /// Kind of the watches.
        kind: WatchKind,
    },
    /// Set a persistent watch on a node, which does not have to exist.
    AddWatch {
        /// Path of the node.
        path: String,
        /// Mode of the watch.
        mode: WatchMode,
    },
    /// Add credentials.
    Auth {
        /// Scheme by which the credentials are checked.
        scheme: String,
        /// The credentials themselves.
        credentials: Bytes,
    },
    /// Set watches again after a reconnect.
    SetWatches(Watches),
    /// Set watches of all modes again after a reconnect.
    SetWatches2 {
        /// Watches that fire once.
        once: Watches,
        /// Nodes with a watch of the mode [`WatchMode::Persistent`].
        persistent: Vec<String>,
        /// Nodes with a watch of the mode [`WatchMode::PersistentRecursive`].
        recursive: Vec<String>,
    },
    /// One step of a SASL authentication.
    Sasl {
        /// The token; `None` is null.
        token: Option<Bytes>,
    },
    /// Get the ephemeral nodes of the session.
    GetEphemerals {
        /// Prefix of the requested paths; empty or `/` for all.
        prefix: String,
    },
    /// Get the number of all nodes below a node, at any depth.
    GetAllChildrenNumber {
        /// Path of the node.
        path: String,
    },
    /// Get the identities of the client.
    WhoAmI,
    /// End the session.
    CloseSession,
}

impl Request {
    /// Returns the operation with which the request is sent.
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

    /// Returns the path of the node, for operations on one node.
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

    /// Returns whether the request is a write, on which a quorum of the servers agrees. The acknowledgement
    /// of a write proves that the session existed at that time.
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

    /// Returns the number of bytes of the paths and data in the request, which is nearly the whole size of a
    /// large request.
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

/// Request numbers with a special meaning. Ordinary requests count up from 1.
pub mod xid {
    /// A watch event, which does not answer a request.
    pub const NOTIFICATION: i32 = -1;
    /// A ping.
    pub const PING: i32 = -2;
    /// Credentials.
    pub const AUTH: i32 = -4;
    /// Watches that are set again after a reconnect.
    pub const SET_WATCHES: i32 = -8;
}

/// Request with its number, as one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFrame {
    /// Number that the reply will carry.
    pub xid: i32,
    /// The request itself.
    pub request: Request,
}

impl RequestFrame {
    /// Appends the frame, with its length, to `out`.
    pub fn encode(&self, out: &mut (impl BufMut + AsMut<[u8]>)) {
        Self::encode_parts(self.xid, &self.request, out);
    }

    /// Appends the frame of `request` with number `xid`, with its length, to `out`.
    pub fn encode_parts(xid: i32, request: &Request, out: &mut (impl BufMut + AsMut<[u8]>)) {
        write_frame(out, |out| {
            out.put_i32(xid);
            out.put_i32(request.op() as i32);
            request.write(out);
        });
    }

    /// Reads a frame without its length.
    ///
    /// # Errors
    /// If the bytes are not a request that this codec knows.
    pub fn decode(frame: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame);
        let xid = reader.i32()?;
        let op = OpCode::from_number(reader.i32()?)?;
        let request = Request::read(op, &mut reader)?;
        reader.finish()?;
        Ok(Self { xid, request })
    }
}

macro_rules! op_codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        /// Number of an operation on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum OpCode {
            $($(#[$doc])* $name = $value,)*
        }

        impl OpCode {
            /// All operations.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the operation with this number.
            ///
            /// # Errors
            /// [`DecodeError::UnknownOpCode`] if this codec does not know the number.
            pub fn from_number(number: i32) -> Result<Self, DecodeError> {
                match number {
                    $($value => Ok(Self::$name),)*
                    other => Err(DecodeError::UnknownOpCode(other)),
                }
            }
        }
    };
}

op_codes! {
    /// Create a node; the reply contains the path.
    Create = 1;
    /// Delete a node.
    Delete = 2;
    /// Get the stat of a node.
    Exists = 3;
    /// Get the data of a node.
    GetData = 4;
    /// Set the data of a node.
    SetData = 5;
    /// Read the access control list.
    GetAcl = 6;
    /// Set the access control list.
    SetAcl = 7;
    /// Get the names of the children.
    GetChildren = 8;
    /// Wait until the server has caught up with the leader.
    Sync = 9;
    /// Heartbeat.
    Ping = 11;
    /// Get the names of the children and the stat.
    GetChildren2 = 12;
    /// Check a version, in a multi.
    Check = 13;
    /// Several writes, all or none.
    Multi = 14;
    /// Create a node; the reply contains the path and the stat.
    Create2 = 15;
    /// Change the ensemble's members.
    Reconfig = 16;
    /// Check that a watch is set.
    CheckWatches = 17;
    /// Remove watches.
    RemoveWatches = 18;
    /// Create a container.
    CreateContainer = 19;
    /// Create a node with a time to live.
    CreateTtl = 21;
    /// Several reads in one request.
    MultiRead = 22;
    /// Add credentials.
    Auth = 100;
    /// Set watches again after a reconnect.
    SetWatches = 101;
    /// One step of a SASL authentication.
    Sasl = 102;
    /// Get the ephemeral nodes of the session.
    GetEphemerals = 103;
    /// Get the number of all nodes below a node.
    GetAllChildrenNumber = 104;
    /// Set watches of all modes again after a reconnect.
    SetWatches2 = 105;
    /// Set a persistent watch.
    AddWatch = 106;
    /// Get the identities of the client.
    WhoAmI = 107;
    /// End the session.
    CloseSession = -11;
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
