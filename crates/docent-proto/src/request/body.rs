//! Bodies of requests, without their headers.

use super::{Create, CreateKind, OpCode, Request, WatchKind, WatchMode, Watches};
use crate::wire::{Reader, Record, Write};
use crate::{Acl, DecodeError, multi};
use bytes::BufMut;

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
