use crate::frame::write_frame;
use crate::multi::{self, MultiOp};
use crate::wire::{Reader, Record, Write};
use crate::{Acl, CreateMode, DecodeError};
use bytes::{BufMut, Bytes};
use std::fmt;
use std::sync::Arc;

/// Request numbers with a meaning of their own. Ordinary requests count up from 1.
pub mod xid {
    /// A watch event, which answers no request.
    pub const NOTIFICATION: i32 = -1;
    /// A ping.
    pub const PING: i32 = -2;
    /// Credentials.
    pub const AUTH: i32 = -4;
    /// Watches set again after a reconnect.
    pub const SET_WATCHES: i32 = -8;
}

macro_rules! op_codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        /// The number of an operation on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum OpCode {
            $($(#[$doc])* $name = $value,)*
        }

        impl OpCode {
            /// The operation that `number` stands for.
            ///
            /// # Errors
            /// [`DecodeError::UnknownOpCode`] when this codec does not know it.
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
    /// Create, answered with the path.
    Create = 1;
    /// Delete.
    Delete = 2;
    /// Stat of a node.
    Exists = 3;
    /// Data of a node.
    GetData = 4;
    /// Set data.
    SetData = 5;
    /// Read the access control list.
    GetAcl = 6;
    /// Set the access control list.
    SetAcl = 7;
    /// Names of the children.
    GetChildren = 8;
    /// Catch up with the leader.
    Sync = 9;
    /// Sign of life.
    Ping = 11;
    /// Names of the children and the stat.
    GetChildren2 = 12;
    /// Check of a version, in a multi.
    Check = 13;
    /// Several writes, all or none.
    Multi = 14;
    /// Create, answered with path and stat.
    Create2 = 15;
    /// Remove watches.
    RemoveWatches = 18;
    /// Create a container.
    CreateContainer = 19;
    /// Create a node with a time to live.
    CreateTtl = 21;
    /// Several reads in one request.
    MultiRead = 22;
    /// Credentials.
    Auth = 100;
    /// Watches set again after a reconnect.
    SetWatches = 101;
    /// End of the session.
    CloseSession = -11;
}

/// Which of the four create operations a [`Create`] is sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateKind {
    /// Answered with the path alone.
    Plain,
    /// Answered with path and stat.
    WithStat,
    /// For containers; answered with path and stat.
    Container,
    /// With a time to live in milliseconds; answered with path and stat.
    Ttl(i64),
}

impl CreateKind {
    pub(crate) fn op(self) -> OpCode {
        match self {
            Self::Plain => OpCode::Create,
            Self::WithStat => OpCode::Create2,
            Self::Container => OpCode::CreateContainer,
            Self::Ttl(_) => OpCode::CreateTtl,
        }
    }

    pub(crate) fn from_op(op: OpCode) -> Option<Self> {
        match op {
            OpCode::Create => Some(Self::Plain),
            OpCode::Create2 => Some(Self::WithStat),
            OpCode::CreateContainer => Some(Self::Container),
            OpCode::CreateTtl => Some(Self::Ttl(0)),
            _ => None,
        }
    }
}

/// A request to create a node.
#[derive(Clone, PartialEq, Eq)]
pub struct Create {
    /// Which operation it is.
    pub kind: CreateKind,
    /// The node, or the prefix of its name when the mode is sequential.
    pub path: String,
    /// The data; `None` is null.
    pub data: Option<Bytes>,
    /// Who may do what.
    pub acl: Arc<[Acl]>,
    /// The mode as the wire holds it; see [`CreateMode::from_flags`].
    pub flags: i32,
}

impl Create {
    /// A create in `mode` that is answered with path and stat. A mode with a time to live takes it from `ttl_ms`.
    pub fn new(path: String, data: Bytes, acl: impl Into<Arc<[Acl]>>, mode: CreateMode, ttl_ms: i64) -> Self {
        let kind = match mode {
            CreateMode::Container => CreateKind::Container,
            mode if mode.has_ttl() => CreateKind::Ttl(ttl_ms),
            _ => CreateKind::WithStat,
        };
        Self { kind, path, data: Some(data), acl: acl.into(), flags: mode.flags() }
    }

    pub(crate) fn payload_len(&self) -> usize {
        let acl: usize = self.acl.iter().map(|acl| 12 + acl.scheme.len() + acl.id.len()).sum();
        self.path.len() + self.data.as_ref().map_or(0, Bytes::len) + acl
    }

    pub(crate) fn write(&self, out: &mut impl BufMut) {
        out.string(&self.path);
        out.buffer(self.data.as_deref());
        out.vec(&self.acl, |out, acl| Record::write(acl, out));
        out.put_i32(self.flags);
        if let CreateKind::Ttl(ttl) = self.kind {
            out.put_i64(ttl);
        }
    }

    pub(crate) fn read(kind: CreateKind, reader: &mut Reader) -> Result<Self, DecodeError> {
        let path = reader.string()?;
        let data = reader.buffer()?;
        let acl = reader.vec(Acl::read)?.into();
        let flags = reader.i32()?;
        let kind = if let CreateKind::Ttl(_) = kind { CreateKind::Ttl(reader.i64()?) } else { kind };
        Ok(Self { kind, path, data, acl, flags })
    }
}

/// Which watches a [`Request::RemoveWatches`] removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// Those on children.
    Children = 1,
    /// Those on data and existence.
    Data = 2,
    /// All of them.
    Any = 3,
}

/// Watches that a client sets again on a new link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watches {
    /// Newest transaction the client has seen: what changed after it fires at once.
    pub relative_zxid: i64,
    /// Watches on the data of nodes that existed.
    pub data: Vec<String>,
    /// Watches on the existence of nodes that did not.
    pub exist: Vec<String>,
    /// Watches on children.
    pub child: Vec<String>,
}

/// What a client can ask of a server once it is connected.
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
        /// Who may do what.
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
        /// Which.
        kind: WatchKind,
    },
    /// Credentials.
    Auth {
        /// How they are checked.
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

    /// True when the servers agree on it in a quorum: its acknowledgement proves that the session existed then.
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

    /// Appends the request's body, without header, to `out`.
    pub fn write(&self, out: &mut impl BufMut) {
        match self {
            Self::Create(create) => create.write(out),
            Self::Delete { path, version } => {
                out.string(path);
                out.put_i32(*version);
            }
            Self::Exists { path, watch }
            | Self::GetData { path, watch }
            | Self::GetChildren { path, watch }
            | Self::GetChildren2 { path, watch } => {
                out.string(path);
                out.bool(*watch);
            }
            Self::SetData { path, data, version } => {
                out.string(path);
                out.buffer(data.as_deref());
                out.put_i32(*version);
            }
            Self::GetAcl { path } | Self::Sync { path } => out.string(path),
            Self::SetAcl { path, acl, version } => {
                out.string(path);
                out.vec(acl, |out, acl| Record::write(acl, out));
                out.put_i32(*version);
            }
            Self::Ping | Self::CloseSession => {}
            Self::Multi(ops) | Self::MultiRead(ops) => multi::write_ops(ops, out),
            Self::RemoveWatches { path, kind } => {
                out.string(path);
                out.put_i32(*kind as i32);
            }
            Self::Auth { scheme, credentials } => {
                out.put_i32(0);
                out.string(scheme);
                out.buffer(Some(credentials));
            }
            Self::SetWatches(watches) => {
                out.put_i64(watches.relative_zxid);
                for paths in [&watches.data, &watches.exist, &watches.child] {
                    out.vec(paths, |out, path| out.string(path));
                }
            }
        }
    }

    /// Reads the body of an `op`.
    ///
    /// # Errors
    /// When the bytes are not such a request.
    pub fn read(op: OpCode, reader: &mut Reader) -> Result<Self, DecodeError> {
        if let Some(kind) = CreateKind::from_op(op) {
            return Create::read(kind, reader).map(Self::Create);
        }
        Ok(match op {
            OpCode::Delete => Self::Delete { path: reader.string()?, version: reader.i32()? },
            OpCode::Exists => Self::Exists { path: reader.string()?, watch: reader.bool()? },
            OpCode::GetData => Self::GetData { path: reader.string()?, watch: reader.bool()? },
            OpCode::SetData => {
                Self::SetData { path: reader.string()?, data: reader.buffer()?, version: reader.i32()? }
            }
            OpCode::GetAcl => Self::GetAcl { path: reader.string()? },
            OpCode::SetAcl => {
                Self::SetAcl { path: reader.string()?, acl: reader.vec(Acl::read)?, version: reader.i32()? }
            }
            OpCode::GetChildren => Self::GetChildren { path: reader.string()?, watch: reader.bool()? },
            OpCode::GetChildren2 => Self::GetChildren2 { path: reader.string()?, watch: reader.bool()? },
            OpCode::Sync => Self::Sync { path: reader.string()? },
            OpCode::Ping => Self::Ping,
            OpCode::Multi => Self::Multi(multi::read_ops(reader)?),
            OpCode::MultiRead => Self::MultiRead(multi::read_ops(reader)?),
            OpCode::RemoveWatches => {
                Self::RemoveWatches { path: reader.string()?, kind: read_watch_kind(reader)? }
            }
            OpCode::Auth => {
                let _kind = reader.i32()?;
                Self::Auth { scheme: reader.string()?, credentials: reader.buffer()?.unwrap_or_default() }
            }
            OpCode::SetWatches => Self::SetWatches(Watches {
                relative_zxid: reader.i64()?,
                data: reader.vec(Reader::string)?,
                exist: reader.vec(Reader::string)?,
                child: reader.vec(Reader::string)?,
            }),
            OpCode::CloseSession => Self::CloseSession,
            OpCode::Check
            | OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl => return Err(DecodeError::UnknownOpCode(op as i32)),
        })
    }
}

fn read_watch_kind(reader: &mut Reader) -> Result<WatchKind, DecodeError> {
    match reader.i32()? {
        1 => Ok(WatchKind::Children),
        2 => Ok(WatchKind::Data),
        3 => Ok(WatchKind::Any),
        other => Err(DecodeError::UnknownEvent(other)),
    }
}

// Payloads and credentials are never printed.
impl fmt::Debug for Create {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Create")
            .field("kind", &self.kind)
            .field("path", &self.path)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.op())?;
        match self.path() {
            Some(path) => write!(f, "({path})"),
            None => Ok(()),
        }
    }
}

/// A request with its number, as one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFrame {
    /// The number that the reply will carry.
    pub xid: i32,
    /// What is asked.
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

    /// Reads a frame (without its length).
    ///
    /// # Errors
    /// When the bytes are not a request this codec knows.
    pub fn decode(frame: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame);
        let xid = reader.i32()?;
        let op = OpCode::from_number(reader.i32()?)?;
        let request = Request::read(op, &mut reader)?;
        reader.finish()?;
        Ok(Self { xid, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MultiResult;

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
        let read = MultiResult::Data { data: Some(secret), stat: crate::Stat::default() };
        let printed = format!("{acl:?} {create:?} {set:?} {read:?} {:?}", Request::Create(create.clone()));
        assert!(!printed.contains("planted"), "{printed}");
    }
}
