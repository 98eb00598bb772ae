use crate::multi::{self, MultiResult};
use crate::request::OpCode;
use crate::wire::{Reader, Record, Write};
use crate::{Acl, Code, DecodeError, Stat};
use bytes::{BufMut, Bytes};
use std::fmt;

/// Header of every reply and watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader {
    /// Number of the answered request, or one of [`xid`](crate::xid).
    pub xid: i32,
    /// Latest transaction that the server had applied; −1 in a watch event.
    pub zxid: i64,
    /// Result code.
    pub code: Code,
}

impl Record for ReplyHeader {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(self.xid);
        out.put_i64(self.zxid);
        out.put_i32(self.code.0);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { xid: reader.i32()?, zxid: reader.i64()?, code: Code(reader.i32()?) })
    }
}

/// Identity by which a server knows a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientInfo {
    /// Scheme by which the identity was proved: `ip`, `digest`, `super` and others.
    pub scheme: String,
    /// Name of the client, in the format of the scheme, without secrets.
    pub user: String,
}

impl Record for ClientInfo {
    fn write(&self, out: &mut impl BufMut) {
        out.string(&self.scheme);
        out.string(&self.user);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { scheme: reader.string()?, user: reader.string()? })
    }
}

/// Body of a successful reply.
#[derive(Clone, PartialEq, Eq)]
pub enum Response {
    /// Reply without a body: to delete, ping, auth, set watches, check watches, remove watches and close.
    Empty,
    /// Reply to a create.
    Created {
        /// Path of the node, with the number if the mode is sequential.
        path: String,
        /// Stat of the node, for the kinds of create that return it.
        stat: Option<Stat>,
    },
    /// Reply to exists, set data, set access control list, and to a check outside a multi.
    Stat(Stat),
    /// Reply to get data, and to a change of the ensemble's members.
    Data {
        /// The data; `None` is null.
        data: Option<Bytes>,
        /// Stat of the node.
        stat: Stat,
    },
    /// Reply to get children.
    Children {
        /// Names of the children, in no particular order.
        names: Vec<String>,
        /// Stat of the node, for the operation that returns it.
        stat: Option<Stat>,
    },
    /// Reply to get access control list.
    Acl {
        /// The list.
        acl: Vec<Acl>,
        /// Stat of the node.
        stat: Stat,
    },
    /// Reply to sync.
    Synced {
        /// Path of the request.
        path: String,
    },
    /// Reply to multi and multi-read: one result for each operation, in order.
    Multi(Vec<MultiResult>),
    /// Reply to add watch: a second result code, which servers set to [`Code::OK`].
    WatchAdded(Code),
    /// Reply to a step of a SASL authentication.
    Sasl {
        /// Token of the server; `None` is null.
        token: Option<Bytes>,
    },
    /// Reply to get ephemerals: paths, in no particular order.
    Ephemerals(Vec<String>),
    /// Reply to get all children's number.
    Count(i32),
    /// Reply to who am I.
    Clients(Vec<ClientInfo>),
}

impl Response {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut impl BufMut) {
        match self {
            Self::Empty => {}
            Self::Created { path, stat } => {
                out.string(path);
                if let Some(stat) = stat {
                    stat.write(out);
                }
            }
            Self::Stat(stat) => stat.write(out),
            Self::Data { data, stat } => {
                out.buffer(data.as_deref());
                stat.write(out);
            }
            Self::Children { names, stat } => {
                out.vec(names, |out, name| out.string(name));
                if let Some(stat) = stat {
                    stat.write(out);
                }
            }
            Self::Acl { acl, stat } => {
                out.vec(acl, |out, acl| Record::write(acl, out));
                stat.write(out);
            }
            Self::Synced { path } => out.string(path),
            Self::Multi(results) => multi::write_results(results, out),
            Self::WatchAdded(code) => out.put_i32(code.0),
            Self::Sasl { token } => out.buffer(token.as_deref()),
            Self::Ephemerals(paths) => out.vec(paths, |out, path| out.string(path)),
            Self::Count(count) => out.put_i32(*count),
            Self::Clients(clients) => out.vec(clients, |out, client| client.write(out)),
        }
    }

    /// Reads the body of a successful reply to a request with the operation `op`.
    ///
    /// # Errors
    /// If the bytes are not such a reply.
    pub fn decode(op: OpCode, body: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let response = Self::read(op, &mut reader)?;
        reader.finish()?;
        Ok(response)
    }

    fn read(op: OpCode, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match op {
            OpCode::Create => Self::Created { path: reader.string()?, stat: None },
            OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
                Self::Created { path: reader.string()?, stat: Some(Stat::read(reader)?) }
            }
            OpCode::Exists | OpCode::SetData | OpCode::SetAcl | OpCode::Check => {
                Self::Stat(Stat::read(reader)?)
            }
            OpCode::GetData | OpCode::Reconfig => {
                Self::Data { data: reader.buffer()?, stat: Stat::read(reader)? }
            }
            OpCode::GetAcl => Self::Acl { acl: reader.vec(Acl::read)?, stat: Stat::read(reader)? },
            OpCode::GetChildren => Self::Children { names: reader.vec(Reader::string)?, stat: None },
            OpCode::GetChildren2 => {
                Self::Children { names: reader.vec(Reader::string)?, stat: Some(Stat::read(reader)?) }
            }
            OpCode::Sync => Self::Synced { path: reader.string()? },
            OpCode::Multi | OpCode::MultiRead => Self::Multi(multi::read_results(reader)?),
            OpCode::AddWatch => Self::WatchAdded(Code(reader.i32()?)),
            OpCode::Sasl => Self::Sasl { token: reader.buffer()? },
            OpCode::GetEphemerals => Self::Ephemerals(reader.vec(Reader::string)?),
            OpCode::GetAllChildrenNumber => Self::Count(reader.i32()?),
            OpCode::WhoAmI => Self::Clients(reader.vec(ClientInfo::read)?),
            OpCode::Delete
            | OpCode::Ping
            | OpCode::CheckWatches
            | OpCode::RemoveWatches
            | OpCode::Auth
            | OpCode::SetWatches
            | OpCode::SetWatches2
            | OpCode::CloseSession => Self::Empty,
        })
    }
}

// Payloads are never printed.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Created { path, .. } => write!(f, "Created({path})"),
            Self::Stat(stat) => write!(f, "{stat:?}"),
            Self::Data { data, stat } => {
                write!(f, "Data({} bytes, {stat:?})", data.as_ref().map_or(0, Bytes::len))
            }
            Self::Children { names, .. } => write!(f, "Children({})", names.len()),
            Self::Acl { acl, .. } => write!(f, "Acl({})", acl.len()),
            Self::Synced { path } => write!(f, "Synced({path})"),
            Self::Multi(results) => write!(f, "Multi({})", results.len()),
            Self::WatchAdded(code) => write!(f, "WatchAdded({code:?})"),
            Self::Sasl { .. } => f.write_str("Sasl"),
            Self::Ephemerals(paths) => write!(f, "Ephemerals({})", paths.len()),
            Self::Count(count) => write!(f, "Count({count})"),
            Self::Clients(clients) => write!(f, "Clients({})", clients.len()),
        }
    }
}

/// Kind of change of a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The node was created.
    Created = 1,
    /// The node was deleted.
    Deleted = 2,
    /// The node's data was set, possibly to the same data.
    DataChanged = 3,
    /// A child was created or deleted.
    ChildrenChanged = 4,
}

impl EventKind {
    fn from_number(number: i32) -> Result<Self, DecodeError> {
        Ok(match number {
            1 => Self::Created,
            2 => Self::Deleted,
            3 => Self::DataChanged,
            4 => Self::ChildrenChanged,
            other => return Err(DecodeError::UnknownEvent(other)),
        })
    }
}

/// Notification that a watch fired.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WatchEvent {
    /// Kind of change.
    pub kind: EventKind,
    /// Path of the node.
    pub path: String,
}

/// Keeper state that servers send with every event of a node: connected.
const SYNC_CONNECTED: i32 = 3;

impl Record for WatchEvent {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(self.kind as i32);
        out.put_i32(SYNC_CONNECTED);
        out.string(&self.path);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let kind = EventKind::from_number(reader.i32()?)?;
        let _state = reader.i32()?;
        Ok(Self { kind, path: reader.string()? })
    }
}
