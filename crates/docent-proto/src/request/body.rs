//! Bodies of requests, without the header in front of them.

use super::{Create, CreateKind, OpCode, Request, WatchKind, Watches};
use crate::wire::{Reader, Record, Write};
use crate::{Acl, DecodeError, multi};
use bytes::BufMut;

impl Request {
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
