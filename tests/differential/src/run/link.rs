use bytes::{Bytes, BytesMut};
use docent_proto::{ConnectRequest, ConnectResponse, Frames, Record, write_frame};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest time that a server takes to send anything.
const PATIENCE: Duration = Duration::from_secs(20);
const LONGEST_FRAME: usize = 64 << 20;

/// A link of a session.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    received: BytesMut,
    /// Numbers of the requests without a reply, each with its step.
    pub(super) waiting: VecDeque<(i32, usize)>,
    last: i32,
}

impl Link {
    /// Opens a link and sends the handshake. The response is `None` if the server closed the link.
    pub(super) async fn open(
        address: SocketAddr,
        connect: &ConnectRequest,
    ) -> io::Result<(Self, Option<ConnectResponse>)> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut link = Self { stream, received: BytesMut::new(), waiting: VecDeque::new(), last: 0 };
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| connect.write(out));
        link.write(&out).await;
        let response = match link.frame().await? {
            Some(frame) => Some(ConnectResponse::decode(frame).map_err(io::Error::other)?),
            None => None,
        };
        Ok((link, response))
    }

    /// Sends a request. If the link is lost, the next read reports that.
    pub(super) async fn send(&mut self, step: usize, xid: Option<i32>, code: i32, body: &[u8]) {
        self.last += 1;
        let xid = xid.unwrap_or(self.last);
        self.waiting.push_back((xid, step));
        let mut out = Vec::with_capacity(body.len() + 12);
        write_frame(&mut out, |out| {
            out.extend(xid.to_be_bytes());
            out.extend(code.to_be_bytes());
            out.extend(body);
        });
        self.write(&out).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Returns the next frame; `None` if the link was closed.
    ///
    /// # Errors
    /// Returns an error if the server sends nothing.
    pub(super) async fn frame(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let frames = Frames::new(LONGEST_FRAME);
            if let Some(frame) = frames.next(&mut self.received).map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            match timeout(PATIENCE, self.stream.read_buf(&mut self.received)).await {
                Ok(Ok(0) | Err(_)) => return Ok(None),
                Ok(Ok(_)) => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }
}
