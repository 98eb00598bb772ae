//! Bodies of requests, without their headers.

use super::{OpCode, Request};
use crate::wire::{Reader, Record, Write};
use crate::{Acl, CreateMode, DecodeError, multi};
use bytes::{BufMut, Bytes};
use std::fmt;
use std::sync::Arc;

/// Kind of create operation by which a [`Create`] is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateKind {
    /// The reply contains only the path.
    Plain,
    /// The reply contains the path and the stat.
    WithStat,
    /// Creates a container; the reply contains the path and the stat.
    Container,
    /// Creates a node with a time to live in milliseconds; the reply contains the path and the stat.
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

/// Request to create a node.
#[derive(Clone, PartialEq, Eq)]
pub struct Create {
    /// Kind of create operation.
    pub kind: CreateKind,
    /// Path of the node; a sequential mode appends a number.
    pub path: String,
    /// Data of the node; `None` is null.
    pub data: Option<Bytes>,
    /// Access control list of the node.
    pub acl: Arc<[Acl]>,
    /// Mode of the node on the wire; see [`CreateMode::from_flags`].
    pub flags: i32,
}

impl Create {
    /// Creates a request for a node in `mode`, whose reply contains the path and the stat. `ttl_ms` is used
    /// only by modes with a time to live.
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
        let path = reader.text()?;
        let data = reader.buffer()?;
        let acl = Acl::read_list(reader)?.into();
        let flags = reader.i32()?;
        let kind = if let CreateKind::Ttl(_) = kind { CreateKind::Ttl(reader.i64()?) } else { kind };
        Ok(Self { kind, path, data, acl, flags })
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

/// Kind of watches that a [`Request::RemoveWatches`](super::Request::RemoveWatches) removes and a
/// [`Request::CheckWatches`](super::Request::CheckWatches) checks. A persistent watch is of both kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// Watches on children.
    Children = 1,
    /// Watches on data and existence.
    Data = 2,
    /// All watches.
    Any = 3,
}

impl WatchKind {
    pub(crate) fn from_number(number: i32) -> Result<Self, DecodeError> {
        match number {
            1 => Ok(Self::Children),
            2 => Ok(Self::Data),
            3 => Ok(Self::Any),
            other => Err(DecodeError::UnknownWatch(other)),
        }
    }
}

/// Mode of a watch that stays set after it fires, created by [`Request::AddWatch`](super::Request::AddWatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchMode {
    /// Reports each change of the node and of the set of its children.
    Persistent = 0,
    /// Reports each creation, deletion and change of data of the node and of all nodes below it, but no
    /// changes of the sets of children.
    PersistentRecursive = 1,
}

impl WatchMode {
    pub(crate) fn from_number(number: i32) -> Result<Self, DecodeError> {
        match number {
            0 => Ok(Self::Persistent),
            1 => Ok(Self::PersistentRecursive),
            other => Err(DecodeError::UnknownWatch(other)),
        }
    }
}

/// Watches that a client sets again on a new connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watches {
    /// Latest transaction that the client has seen. Watches on nodes that changed later fire immediately.
    pub relative_zxid: i64,
    /// Watches on the data of nodes that existed.
    pub data: Vec<String>,
    /// Watches on the existence of nodes that did not exist.
    pub exist: Vec<String>,
    /// Watches on children.
    pub child: Vec<String>,
}

impl Watches {
    pub(crate) fn payload_len(&self) -> usize {
        [&self.data, &self.exist, &self.child].into_iter().flatten().map(String::len).sum()
    }
}

impl Request {
    /// Appends the request's body, without its header, to `out`.
    pub fn write(&self, out: &mut impl BufMut) {
        match self {
            Self::Create(create) => create.write(out),
            Self::Delete { path, version } | Self::Check { path, version } => {
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
            Self::GetAcl { path }
            | Self::Sync { path }
            | Self::GetEphemerals { prefix: path }
            | Self::GetAllChildrenNumber { path } => out.string(path),
            Self::SetAcl { path, acl, version } => {
                out.string(path);
                out.vec(acl, |out, acl| Record::write(acl, out));
                out.put_i32(*version);
            }
            Self::Ping | Self::WhoAmI | Self::CloseSession => {}
            Self::Multi(ops) | Self::MultiRead(ops) => multi::write_ops(ops, out),
            Self::Reconfig { joining, leaving, members, config } => {
                for servers in [joining, leaving, members] {
                    out.buffer(servers.as_deref().map(str::as_bytes));
                }
                out.put_i64(*config);
            }
            Self::CheckWatches { path, kind } | Self::RemoveWatches { path, kind } => {
                out.string(path);
                out.put_i32(*kind as i32);
            }
            Self::AddWatch { path, mode } => {
                out.string(path);
                out.put_i32(*mode as i32);
            }
            Self::Auth { scheme, credentials } => {
                out.put_i32(0);
                out.string(scheme);
                out.buffer(Some(credentials));
            }
            Self::SetWatches(watches) => watches.write(out),
            Self::SetWatches2 { once, persistent, recursive } => {
                once.write(out);
                write_paths(out, [persistent, recursive]);
            }
            Self::Sasl { token } => out.buffer(token.as_deref()),
        }
    }

    /// Reads the body of a request with the operation `op`.
    ///
    /// # Errors
    /// If the bytes are not such a request.
    pub fn read(op: OpCode, reader: &mut Reader) -> Result<Self, DecodeError> {
        if let Some(kind) = CreateKind::from_op(op) {
            return Create::read(kind, reader).map(Self::Create);
        }
        Ok(match op {
            OpCode::Delete => Self::Delete { path: reader.text()?, version: reader.i32()? },
            OpCode::Exists => Self::Exists { path: reader.text()?, watch: reader.flag()? },
            OpCode::GetData => Self::GetData { path: reader.text()?, watch: reader.flag()? },
            OpCode::SetData => {
                Self::SetData { path: nullable(reader)?, data: reader.buffer()?, version: reader.i32()? }
            }
            OpCode::GetAcl => Self::GetAcl { path: reader.text()? },
            OpCode::SetAcl => {
                Self::SetAcl { path: nullable(reader)?, acl: Acl::read_list(reader)?, version: reader.i32()? }
            }
            OpCode::GetChildren => Self::GetChildren { path: reader.text()?, watch: reader.flag()? },
            OpCode::GetChildren2 => Self::GetChildren2 { path: reader.text()?, watch: reader.flag()? },
            OpCode::Sync => Self::Sync { path: nullable(reader)? },
            OpCode::Ping => Self::Ping,
            OpCode::Check => Self::Check { path: nullable(reader)?, version: reader.i32()? },
            OpCode::Multi => Self::Multi(multi::read_ops(reader)?),
            OpCode::MultiRead => Self::MultiRead(multi::read_ops(reader)?),
            OpCode::Reconfig => Self::Reconfig {
                joining: reader.optional_text()?,
                leaving: reader.optional_text()?,
                members: reader.optional_text()?,
                config: reader.i64()?,
            },
            OpCode::CheckWatches => {
                Self::CheckWatches { path: reader.text()?, kind: WatchKind::from_number(reader.i32()?)? }
            }
            OpCode::RemoveWatches => {
                Self::RemoveWatches { path: nullable(reader)?, kind: WatchKind::from_number(reader.i32()?)? }
            }
            OpCode::AddWatch => {
                Self::AddWatch { path: nullable(reader)?, mode: WatchMode::from_number(reader.i32()?)? }
            }
            OpCode::Auth => {
                let _kind = reader.i32()?;
                read_credentials(reader)?
            }
            OpCode::SetWatches => Self::SetWatches(Watches::read(reader)?),
            OpCode::SetWatches2 => Self::SetWatches2 {
                once: Watches::read(reader)?,
                persistent: read_paths(reader)?,
                recursive: read_paths(reader)?,
            },
            OpCode::Sasl => Self::Sasl { token: reader.buffer()? },
            OpCode::GetEphemerals => Self::GetEphemerals { prefix: nullable(reader)? },
            OpCode::GetAllChildrenNumber => Self::GetAllChildrenNumber { path: reader.text()? },
            OpCode::WhoAmI => Self::WhoAmI,
            OpCode::CloseSession => Self::CloseSession,
            OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
                return Err(DecodeError::UnknownOpCode(op as i32));
            }
        })
    }
}

impl Watches {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i64(self.relative_zxid);
        write_paths(out, [&self.data, &self.exist, &self.child]);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            relative_zxid: reader.i64()?,
            data: read_paths(reader)?,
            exist: read_paths(reader)?,
            child: read_paths(reader)?,
        })
    }
}

fn write_paths<'a>(out: &mut impl BufMut, lists: impl IntoIterator<Item = &'a Vec<String>>) {
    for paths in lists {
        out.vec(paths, |out, path| out.string(path));
    }
}

/// Reads a list of paths. The real server fails on a null list.
fn read_paths(reader: &mut Reader) -> Result<Vec<String>, DecodeError> {
    reader.list(Reader::text)?.ok_or(DecodeError::NullVector)
}

/// Reads a string that may be null. The empty string, which null becomes, is not a valid path either.
fn nullable(reader: &mut Reader) -> Result<String, DecodeError> {
    reader.optional_text().map(Option::unwrap_or_default)
}

/// Reads credentials. All schemes refuse null credentials, except `ip`, which uses the address of the
/// connection. For the other schemes, null credentials are mapped to an empty scheme.
fn read_credentials(reader: &mut Reader) -> Result<Request, DecodeError> {
    let (scheme, credentials) = (nullable(reader)?, reader.buffer()?);
    let scheme = if credentials.is_some() || scheme == "ip" { scheme } else { String::new() };
    Ok(Request::Auth { scheme, credentials: credentials.unwrap_or_default() })
}
