//! A minimal server with scripted replies.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that cannot continue fails")]

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

/// The session of every client.
pub const SESSION: i64 = 0x1234;

/// A server that sends scripted replies to one client.
pub struct FakeServer {
    net: Net,
    address: SocketAddr,
    listener: Mutex<NetListener>,
}

/// A link of the client.
pub struct FakeLink {
    stream: NetStream,
    received: BytesMut,
}

impl FakeServer {
    /// Starts a server on its own in-memory network, for paused time.
    pub async fn start() -> Self {
        Self::start_on(&Net::Memory(MemoryNet::new())).await
    }

    /// Starts a server on a network.
    pub async fn start_on(net: &Net) -> Self {
        let listener = net.listen().await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { net: net.clone(), address, listener: Mutex::new(listener) }
    }

    /// Returns the settings of a client of this server.
    pub fn client_builder(&self) -> ClientBuilder {
        self.net.client_builder(self.connect_string())
    }

    /// The address of this server.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Waits for the client's next link, before its handshake.
    pub async fn link(&self) -> FakeLink {
        let (stream, _) = soon(self.listener.lock().await.accept()).await.unwrap();
        FakeLink { stream, received: BytesMut::new() }
    }

    /// Waits for the client's next link, and answers its handshake.
    pub async fn attached(&self, timeout_ms: i32) -> FakeLink {
        let mut link = self.link().await;
        link.connect_request().await.unwrap();
        link.send(&connected(timeout_ms, SESSION)).await;
        link
    }
}

impl FakeLink {
    /// Reads the client's handshake.
    ///
    /// # Errors
    ///
    /// Fails if the client has closed the link.
    pub async fn connect_request(&mut self) -> io::Result<ConnectRequest> {
        Ok(ConnectRequest::decode(self.frame().await?).unwrap())
    }

    /// Reads the client's next request.
    ///
    /// # Errors
    ///
    /// Fails if the client has closed the link.
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

    /// Sends bytes unchanged. An error is ignored, because the client may have closed the link.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Closes the link after everything was sent.
    pub async fn end(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits until the client has closed the link, ignoring earlier requests.
    pub async fn until_closed(mut self) {
        while self.frame().await.is_ok() {}
    }
}

/// Returns a frame with its length.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| out.put_slice(body));
    out.to_vec()
}

/// Returns the reply to a handshake.
pub fn connected(timeout_ms: i32, session_id: i64) -> Vec<u8> {
    greeting(timeout_ms, session_id, false)
}

/// Returns the reply of a server without a quorum to a client that requested a read-only session.
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

/// Returns the body of a successful reply.
pub fn body(response: &Response) -> Vec<u8> {
    let mut out = BytesMut::new();
    response.write(&mut out);
    out.to_vec()
}

/// Returns a reply: header and body.
pub fn reply(xid: i32, zxid: i64, code: i32, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_i32(xid);
    out.put_i64(zxid);
    out.put_i32(code);
    out.put_slice(body);
    frame(out.copy_to_bytes(out.len()).as_ref())
}
