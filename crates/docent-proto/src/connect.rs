use crate::DecodeError;
use crate::wire::{Reader, Record, Write};
use bytes::{BufMut, Bytes};
use std::fmt;

/// The first frame of a client on a link: opens a session or attaches to one.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Newest transaction the client has seen; a server that is behind it refuses the link.
    pub last_zxid_seen: i64,
    /// Session timeout asked for, in milliseconds.
    pub timeout_ms: i32,
    /// Session to attach to; 0 opens a new one.
    pub session_id: i64,
    /// Password of that session.
    pub password: Bytes,
    /// True when a read-only server will do. `None` is not written: clients before 3.4 do not have the field.
    pub read_only: Option<bool>,
}

/// The first frame of a server on a link.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// Session timeout granted, in milliseconds; not positive when the session is gone.
    pub timeout_ms: i32,
    /// The session; 0 when the one asked for is gone.
    pub session_id: i64,
    /// Password to attach to the session again.
    pub password: Bytes,
    /// True when the server is read-only. `None` is not written.
    pub read_only: Option<bool>,
}

const PROTOCOL_VERSION: i32 = 0;

impl ConnectRequest {
    /// The request of a client that has seen nothing to open a session with this timeout, in milliseconds.
    pub fn new_session(timeout_ms: i32) -> Self {
        Self {
            last_zxid_seen: 0,
            timeout_ms,
            session_id: 0,
            password: Bytes::from_static(&[0; 16]),
            read_only: Some(false),
        }
    }
}

impl Record for ConnectRequest {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(PROTOCOL_VERSION);
        out.put_i64(self.last_zxid_seen);
        out.put_i32(self.timeout_ms);
        out.put_i64(self.session_id);
        out.buffer(Some(&self.password));
        write_read_only(out, self.read_only);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let _version = reader.i32()?;
        Ok(Self {
            last_zxid_seen: reader.i64()?,
            timeout_ms: reader.i32()?,
            session_id: reader.i64()?,
            password: reader.buffer()?.unwrap_or_default(),
            read_only: read_read_only(reader, Reader::flag)?,
        })
    }
}

impl Record for ConnectResponse {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(PROTOCOL_VERSION);
        out.put_i32(self.timeout_ms);
        out.put_i64(self.session_id);
        out.buffer(Some(&self.password));
        write_read_only(out, self.read_only);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let _version = reader.i32()?;
        Ok(Self {
            timeout_ms: reader.i32()?,
            session_id: reader.i64()?,
            password: reader.buffer()?.unwrap_or_default(),
            read_only: read_read_only(reader, Reader::bool)?,
        })
    }
}

fn write_read_only(out: &mut impl BufMut, read_only: Option<bool>) {
    if let Some(read_only) = read_only {
        out.bool(read_only);
    }
}

fn read_read_only(
    reader: &mut Reader,
    read: impl FnOnce(&mut Reader) -> Result<bool, DecodeError>,
) -> Result<Option<bool>, DecodeError> {
    if reader.is_empty() { Ok(None) } else { read(reader).map(Some) }
}

// The password of a session is all one needs to take it over or close it: it is never printed.
impl fmt::Debug for ConnectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectRequest")
            .field("last_zxid_seen", &self.last_zxid_seen)
            .field("timeout_ms", &self.timeout_ms)
            .field("session_id", &format_args!("{:#x}", self.session_id))
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectResponse")
            .field("timeout_ms", &self.timeout_ms)
            .field("session_id", &format_args!("{:#x}", self.session_id))
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
