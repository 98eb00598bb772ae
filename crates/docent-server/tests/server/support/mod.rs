//! A client that only sends frames and checks the replies.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

pub(crate) mod warnings;
pub(crate) mod world;

use bytes::{Bytes, BytesMut};
use docent_proto::{
    Acl, Code, ConnectRequest, ConnectResponse, Create, CreateMode, Frames, Reader, Record, ReplyHeader,
    Request, RequestFrame, Response, WatchEvent, write_frame, xid,
};
use docent_server::Server;
use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Time limit for every wait. Only a defect takes longer.
const BOUND: Duration = Duration::from_secs(10);

pub(crate) async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future).await.expect("the operation timed out")
}

/// Reserves a port for servers that listen on it one after the other. No outgoing connection takes the port
/// while the socket exists.
pub(crate) fn kept_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Returns the answer to a four-letter word.
pub(crate) async fn four_letter_word(address: &str, word: &str) -> String {
    try_four_letter_word(address, word).await.expect("the server answers words")
}

/// Like [`four_letter_word`], but returns `None` if the link is refused or closed.
pub(crate) async fn try_four_letter_word(address: &str, word: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(word.as_bytes()).await.ok()?;
    let mut text = String::new();
    bounded(stream.read_to_string(&mut text)).await.ok()?;
    Some(text)
}

/// Any transport.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) struct Peer {
    pub(crate) stream: Box<dyn Stream>,
    received: BytesMut,
    last_xid: i32,
    pub(crate) session: ConnectResponse,
    pub(crate) events: VecDeque<WatchEvent>,
    pub(crate) last_zxid: i64,
}

pub(crate) fn fresh(timeout_ms: i32) -> ConnectRequest {
    ConnectRequest::new_session(timeout_ms)
}

impl Peer {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::handshake(server, &fresh(10_000)).await.expect("a new session is granted")
    }

    /// Connects with `request`; `None` if the server closes the link without an answer.
    pub(crate) async fn handshake(server: &Server, request: &ConnectRequest) -> Option<Self> {
        let mut peer = Self::raw(server).await;
        peer.attach(request).await.then_some(peer)
    }

    /// Connects with a new session.
    pub(crate) async fn connect(address: &str) -> Self {
        let mut peer = Self::over(TcpStream::connect(address).await.unwrap());
        assert!(peer.attach(&fresh(10_000)).await);
        peer
    }

    /// Opens a link without sending anything.
    pub(crate) async fn raw(server: &Server) -> Self {
        Self::over(TcpStream::connect(server.connect_string()).await.unwrap())
    }

    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        let session =
            ConnectResponse { timeout_ms: 0, session_id: 0, password: Bytes::new(), read_only: None };
        Self {
            stream: Box::new(stream),
            received: BytesMut::new(),
            last_xid: 0,
            session,
            events: VecDeque::new(),
            last_zxid: 0,
        }
    }

    /// Sends the handshake. Returns `false` if the server closes the link without an answer.
    pub(crate) async fn attach(&mut self, request: &ConnectRequest) -> bool {
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| request.write(out));
        self.send_bytes(&out).await;
        let Some(frame) = self.frame().await else { return false };
        self.session = ConnectResponse::decode(frame).unwrap();
        true
    }

    /// Attaches to this peer's session on a new link.
    pub(crate) async fn reattach(&self, server: &Server) -> Self {
        Self::handshake(server, &self.ticket()).await.expect("the server answers the handshake")
    }

    /// Returns the request to attach to this peer's session.
    pub(crate) fn ticket(&self) -> ConnectRequest {
        let ConnectResponse { session_id, password, timeout_ms, .. } = self.session.clone();
        ConnectRequest {
            last_zxid_seen: self.last_zxid,
            timeout_ms,
            session_id,
            password,
            read_only: Some(false),
        }
    }

    /// Returns the next frame; `None` once the server has closed the link.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = Frames::new(1 << 30).next(&mut self.received).unwrap() {
                return Some(frame);
            }
            match bounded(self.stream.read_buf(&mut self.received)).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Waits until the next frame has arrived, without removing it. This method is cancel safe.
    pub(crate) async fn peek_frame(&mut self) {
        let is_complete = |received: &BytesMut| {
            let length = received.first_chunk().map(|prefix| i32::from_be_bytes(*prefix));
            length.is_some_and(|length| received.len() >= 4 + usize::try_from(length).unwrap())
        };
        while !is_complete(&self.received) {
            assert!(self.stream.read_buf(&mut self.received).await.unwrap() > 0, "the link stays open");
        }
    }

    /// Closes the sending direction.
    pub(crate) async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        // The server may have closed the link already, which the next read notices.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Sends a request without waiting, and returns its xid.
    pub(crate) async fn send(&mut self, request: Request) -> i32 {
        self.last_xid += 1;
        let xid = match request {
            Request::Ping => xid::PING,
            Request::SetWatches(_) | Request::SetWatches2 { .. } => xid::SET_WATCHES,
            Request::Auth { .. } => xid::AUTH,
            _ => self.last_xid,
        };
        let mut out = BytesMut::new();
        RequestFrame { xid, request }.encode(&mut out);
        self.send_bytes(&out).await;
        xid
    }

    /// Returns the header and body of the next reply; `None` once the link is closed. Events that arrive
    /// before it are kept.
    pub(crate) async fn reply(&mut self) -> Option<(ReplyHeader, Bytes)> {
        loop {
            let mut reader = Reader::new(self.frame().await?);
            let header = ReplyHeader::read(&mut reader).unwrap();
            if header.xid == xid::NOTIFICATION {
                self.events.push_back(WatchEvent::decode(reader.into_rest()).unwrap());
                continue;
            }
            self.last_zxid = self.last_zxid.max(header.zxid);
            return Some((header, reader.into_rest()));
        }
    }

    pub(crate) async fn call(&mut self, request: Request) -> Result<Response, Code> {
        let op = request.op();
        let xid = self.send(request).await;
        let (header, body) = self.reply().await.expect("the link stays open");
        assert_eq!(header.xid, xid);
        header.code.into_result()?;
        Ok(Response::decode(op, body).unwrap())
    }

    /// Returns the next event, whether or not it has already arrived.
    pub(crate) async fn event(&mut self) -> WatchEvent {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let (zxid, event) = self.numbered_event().await;
        assert_eq!(zxid, -1);
        event
    }

    /// Returns the next event and the transaction in its header.
    pub(crate) async fn numbered_event(&mut self) -> (i64, WatchEvent) {
        let mut reader = Reader::new(self.frame().await.expect("the link stays open"));
        let header = ReplyHeader::read(&mut reader).unwrap();
        assert_eq!(header.xid, xid::NOTIFICATION);
        (header.zxid, WatchEvent::decode(reader.into_rest()).unwrap())
    }

    pub(crate) async fn create(&mut self, path: &str, mode: CreateMode) -> Result<String, Code> {
        match self.call(Request::Create(node(path, mode))).await? {
            Response::Created { path, .. } => Ok(path),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn exists(&mut self, path: &str, watch: bool) -> Result<Response, Code> {
        self.call(Request::Exists { path: path.into(), watch }).await
    }

    pub(crate) async fn get_data(&mut self, path: &str, watch: bool) -> Result<Response, Code> {
        self.call(Request::GetData { path: path.into(), watch }).await
    }

    pub(crate) async fn set_data(&mut self, path: &str, data: &[u8]) -> Result<Response, Code> {
        let data = Some(Bytes::copy_from_slice(data));
        self.call(Request::SetData { path: path.into(), data, version: -1 }).await
    }

    pub(crate) async fn delete(&mut self, path: &str) -> Result<Response, Code> {
        self.call(Request::Delete { path: path.into(), version: -1 }).await
    }

    /// Waits until the server closes the link, discarding frames that arrive before, and returns `true`.
    pub(crate) async fn is_closed(&mut self) -> bool {
        while self.frame().await.is_some() {}
        true
    }
}

pub(crate) fn node(path: &str, mode: CreateMode) -> Create {
    Create::new(path.into(), Bytes::new(), Acl::open(), mode, 0)
}
