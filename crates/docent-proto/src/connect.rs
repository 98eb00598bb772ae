use crate::DecodeError;
use crate::wire::{Reader, Record, Write};
use bytes::{BufMut, Bytes};
use std::fmt;

/// First frame of a client on a connection, which opens a session or re-attaches to one.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Latest transaction that the client has seen. A server that has not applied it yet refuses the
    /// connection.
    pub last_zxid_seen: i64,
    /// Requested session timeout, in milliseconds.
    pub timeout_ms: i32,
    /// Session to re-attach to; 0 opens a new session.
    pub session_id: i64,
    /// Password of that session.
    pub password: Bytes,
    /// Whether a read-only server is acceptable. `None` omits the field, which clients before 3.4 do not
    /// have.
    pub read_only: Option<bool>,
}

/// First frame of a server on a connection.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// Granted session timeout, in milliseconds; zero or negative if the session has expired.
    pub timeout_ms: i32,
    /// Id of the session; 0 if the requested session has expired.
    pub session_id: i64,
    /// Password for re-attaching to the session.
    pub password: Bytes,
    /// Whether the server is read-only. `None` omits the field.
    pub read_only: Option<bool>,
}

const PROTOCOL_VERSION: i32 = 0;

impl ConnectRequest {
    /// Creates a request for a new session with this timeout in milliseconds, from a client that has seen no
    /// transaction.
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

// Anyone who knows the password of a session can take over or close the session, so it is never printed.
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
