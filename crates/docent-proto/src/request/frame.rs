use super::{OpCode, Request};
use crate::DecodeError;
use crate::wire::{Reader, write_frame};
use bytes::{BufMut, Bytes};

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
