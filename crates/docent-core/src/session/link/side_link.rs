use crate::session::link::transport::Io;
use bytes::{Bytes, BytesMut};
use docent_proto::{
    ConnectRequest, ConnectResponse, DecodeError, Frames, Reader, Record, ReplyHeader, Request, RequestFrame,
    write_frame, xid,
};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Largest accepted frame in bytes: a connect response, or a short reply.
const FRAME_LIMIT: usize = 4 * 1024;

/// A separate link for a few sequential requests, beside the client's session.
pub(super) struct SideLink {
    io: Box<dyn Io>,
    received: BytesMut,
}

impl SideLink {
    pub(super) fn new(io: Box<dyn Io>) -> Self {
        Self { io, received: BytesMut::new() }
    }

    /// Opens or resumes a session. Credentials and a request are sent in the same write; their
    /// [replies](Self::reply) follow.
    pub(super) async fn connect_and_send(
        &mut self,
        connect: &ConnectRequest,
        credentials: impl Iterator<Item = Request>,
        request: &Request,
    ) -> io::Result<ConnectResponse> {
        let mut out = Vec::new();
        write_frame(&mut out, |out| connect.write(out));
        for credentials in credentials {
            RequestFrame::encode_parts(xid::AUTH, &credentials, &mut out);
        }
        RequestFrame::encode_parts(1, request, &mut out);
        self.send(&out).await?;
        ConnectResponse::decode(self.frame().await?).map_err(invalid)
    }

    pub(super) async fn call(&mut self, request: &Request) -> io::Result<ReplyHeader> {
        let mut out = Vec::new();
        RequestFrame::encode_parts(1, request, &mut out);
        self.send(&out).await?;
        self.reply().await
    }

    pub(super) async fn reply(&mut self) -> io::Result<ReplyHeader> {
        ReplyHeader::read(&mut Reader::new(self.frame().await?)).map_err(invalid)
    }

    /// Writes and flushes `out`, because a stream may buffer bytes until it is flushed.
    async fn send(&mut self, out: &[u8]) -> io::Result<()> {
        self.io.write_all(out).await?;
        self.io.flush().await
    }

    async fn frame(&mut self) -> io::Result<Bytes> {
        let frames = Frames::new(FRAME_LIMIT);
        loop {
            if let Some(frame) = frames.next(&mut self.received).map_err(invalid)? {
                return Ok(frame);
            }
            if self.io.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn invalid(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
