use super::OpCode;
use crate::wire::{Reader, Record, Write};
use crate::{Acl, CreateMode, DecodeError};
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
