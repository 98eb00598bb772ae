use super::OpCode;
use crate::wire::{Reader, Record, Write};
use crate::{Acl, CreateMode, DecodeError};
use bytes::{BufMut, Bytes};
use std::fmt;
use std::sync::Arc;

/// Create operation, of four, as which a [`Create`] is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateKind {
    /// Answered with the path alone.
    Plain,
    /// Answered with path and stat.
    WithStat,
    /// Create of a container; answered with path and stat.
    Container,
    /// Create with a time to live in milliseconds; answered with path and stat.
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
    /// The operation.
    pub kind: CreateKind,
    /// The node, or the prefix of its name when the mode is sequential.
    pub path: String,
    /// The data; `None` is null.
    pub data: Option<Bytes>,
    /// The node's access control list.
    pub acl: Arc<[Acl]>,
    /// The mode as the wire holds it; see [`CreateMode::from_flags`].
    pub flags: i32,
}

impl Create {
    /// A create in `mode` that is answered with path and stat. A mode with a time to live takes it from
    /// `ttl_ms`.
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
