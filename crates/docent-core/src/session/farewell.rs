//! The end of a session that was given up: its nodes would stand for as long as the servers keep it.

use super::dialer::{Dialer, LastError, Servers, Start};
use super::transport::{Io, Transport};
use bytes::{Bytes, BytesMut};
use docent_proto::{
    ConnectRequest, ConnectResponse, DecodeError, Frames, Record, Request, RequestFrame, write_frame,
};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Largest frame of a farewell: a connect response, or the short reply to a close.
const FRAME_LIMIT: usize = 4 * 1024;

/// What it takes to end a session on a link of its own.
pub(crate) struct Farewell {
    pub(super) last_zxid: i64,
    pub(super) session_id: i64,
    pub(super) password: Bytes,
    pub(super) timeout: Duration,
}

impl Farewell {
    /// Ends the session. Tries until a server says that it is gone.
    pub(crate) async fn say(self, transport: Arc<dyn Transport>, servers: Servers) {
        let mut dialer = Dialer::new(transport, servers, LastError::default(), Start::Jittered);
        loop {
            let io = dialer.next(self.timeout).await;
            let limit = dialer.attempt_timeout(self.timeout);
            match tokio::time::timeout(limit, self.end(io)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => tracing::debug!(%error, "an abandoned session could not be ended yet"),
                Err(_) => tracing::debug!("an abandoned session could not be ended yet: no answer"),
            }
        }
    }

    async fn end(&self, mut io: Box<dyn Io>) -> io::Result<()> {
        let connect = ConnectRequest {
            last_zxid_seen: self.last_zxid,
            timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: self.session_id,
            password: self.password.clone(),
            read_only: Some(false),
        };
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| connect.write(out));
        io.write_all(&out).await?;
        let mut received = BytesMut::new();
        let response = ConnectResponse::decode(frame(&mut io, &mut received).await?).map_err(invalid)?;
        if response.timeout_ms <= 0 || response.session_id != self.session_id {
            return Ok(());
        }
        out.clear();
        RequestFrame::encode_parts(1, &Request::CloseSession, &mut out);
        io.write_all(&out).await?;
        frame(&mut io, &mut received).await.map(drop)
    }
}

async fn frame(io: &mut Box<dyn Io>, received: &mut BytesMut) -> io::Result<Bytes> {
    let frames = Frames::new(FRAME_LIMIT);
    loop {
        if let Some(frame) = frames.next(received).map_err(invalid)? {
            return Ok(frame);
        }
        if io.read_buf(received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn invalid(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl fmt::Debug for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Farewell({:#x})", self.session_id)
    }
}
