//! The server's end of a link.

use bytes::{Bytes, BytesMut};
use docent_core::Io;
use docent_proto::{ConnectRequest, ConnectResponse, Frames, Record, write_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// The frames of a link.
pub(crate) struct Link {
    io: DuplexStream,
    frames: Frames,
    input: BytesMut,
}

impl Link {
    /// Opens a link, and returns it with the client's end.
    pub(crate) fn open() -> (Self, Box<dyn Io>) {
        let (client, io) = tokio::io::duplex(64 * 1024);
        (Self { io, frames: Frames::new(1024 * 1024), input: BytesMut::new() }, Box::new(client))
    }

    /// Waits for the next frame; `None` if the client has closed the link. This method is cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.frames.next(&mut self.input).unwrap() {
                return Some(frame);
            }
            if self.io.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Sends frames to a client that may have closed the link.
    pub(crate) async fn send(&mut self, frames: &[u8]) {
        let _ = self.io.write_all(frames).await;
    }
}

/// Writes the answer that opens `session_id` with the requested timeout; a `session_id` of 0 refuses the
/// session.
pub(crate) fn attached(request: &ConnectRequest, session_id: i64, out: &mut BytesMut) {
    let response = ConnectResponse {
        timeout_ms: if session_id == 0 { 0 } else { request.timeout_ms },
        session_id,
        password: Bytes::from_static(&[7; 16]),
        read_only: Some(false),
    };
    write_frame(out, |out| response.write(out));
}
