//! A server of a few lines that says what a test tells it to.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that cannot go on fails")]

use crate::soon;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use docent::client::ClientBuilder;
use docent::server::Listener;
use docent_battery::{MemoryNet, Net, NetListener, NetStream};
use docent_proto::{ConnectRequest, ConnectResponse, Frames, Record, RequestFrame, Response, write_frame};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

/// The session that every client gets.
pub const SESSION: i64 = 0x1234;

/// Server that says what a test tells it to, to one client.
pub struct FakeServer {
    net: Net,
    address: SocketAddr,
    listener: Mutex<NetListener>,
}

/// A link of the one client.
pub struct FakeLink {
    stream: NetStream,
    received: BytesMut,
}

impl FakeServer {
    /// A server on a network in memory of its own, for paused time.
    pub async fn start() -> Self {
        Self::start_on(&Net::Memory(MemoryNet::new())).await
    }

    /// A server on a network.
    pub async fn start_on(net: &Net) -> Self {
        let listener = net.listen().await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { net: net.clone(), address, listener: Mutex::new(listener) }
    }

    /// Settings of a client of this server.
    pub fn client_builder(&self) -> ClientBuilder {
        self.net.client_builder(self.connect_string())
    }

    /// Its address.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// The client's next link, before its handshake.
    pub async fn link(&self) -> FakeLink {
        let (stream, _) = soon(self.listener.lock().await.accept()).await.unwrap();
        FakeLink { stream, received: BytesMut::new() }
    }

    /// The client's next link, attached.
    pub async fn attached(&self, timeout_ms: i32) -> FakeLink {
        let mut link = self.link().await;
        link.connect_request().await.unwrap();
        link.send(&connected(timeout_ms, SESSION)).await;
        link
    }
}

impl FakeLink {
    /// The client's handshake.
    ///
    /// # Errors
    /// When it has closed the link.
    pub async fn connect_request(&mut self) -> io::Result<ConnectRequest> {
        Ok(ConnectRequest::decode(self.frame().await?).unwrap())
    }

    /// The client's next request.
    ///
    /// # Errors
    /// When it has closed the link.
    pub async fn request(&mut self) -> io::Result<RequestFrame> {
        Ok(RequestFrame::decode(self.frame().await?).unwrap())
    }

    async fn frame(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(frame) = Frames::new(1 << 20).next(&mut self.received).unwrap() {
                return Ok(frame);
            }
            if soon(self.stream.read_buf(&mut self.received)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends bytes as they are. That the client may have closed the link is another's business.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Closes the link, after all that was sent.
    pub async fn end(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits until the client has closed the link, whatever it sends before.
    pub async fn until_closed(mut self) {
        while self.frame().await.is_ok() {}
    }
}

/// A frame with its length.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| out.put_slice(body));
    out.to_vec()
}

/// Answer to a handshake.
pub fn connected(timeout_ms: i32, session_id: i64) -> Vec<u8> {
    greeting(timeout_ms, session_id, false)
}

/// Answer of a server without a quorum to a client that asked for a session to read with.
pub fn connected_read_only(timeout_ms: i32, session_id: i64) -> Vec<u8> {
    greeting(timeout_ms, session_id, true)
}

fn greeting(timeout_ms: i32, session_id: i64, read_only: bool) -> Vec<u8> {
    let response = ConnectResponse {
        timeout_ms,
        session_id,
        password: Bytes::from_static(&[7; 16]),
        read_only: Some(read_only),
    };
    let mut out = BytesMut::new();
    response.write(&mut out);
    frame(&out)
}

/// The body of a successful reply.
pub fn body(response: &Response) -> Vec<u8> {
    let mut out = BytesMut::new();
    response.write(&mut out);
    out.to_vec()
}

/// A reply: header and body.
pub fn reply(xid: i32, zxid: i64, code: i32, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_i32(xid);
    out.put_i64(zxid);
    out.put_i32(code);
    out.put_slice(body);
    frame(out.copy_to_bytes(out.len()).as_ref())
}
