use crate::net::{Net, NetStream};
use bytes::{Bytes, BytesMut};
use docent_proto::{
    Code, ConnectRequest, ConnectResponse, DecodeError, Frames, OpCode, Record, ReplyHeader, Request,
    RequestFrame, Response, WatchEvent, write_frame, xid,
};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{ToSocketAddrs, lookup_host};

const FRAME_LIMIT: usize = 64 << 20;
/// Time limit for everything that a test waits for on a loopback link.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Error of a [`RawClient`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// The link failed.
    #[error("link failed: {0}")]
    Io(#[from] io::Error),
    /// The server sent something that is not a reply.
    #[error("cannot decode the reply: {0}")]
    Decode(#[from] DecodeError),
    /// The requested session was not opened through a proxy that shares the record.
    #[error("session {0:#x} was not opened through this proxy")]
    Unknown(i64),
    /// The requested session has expired.
    #[error("session {0:#x} has expired")]
    Gone(i64),
    /// The server refused the request.
    #[error("request failed: {0}")]
    Refused(Code),
}

/// A server's reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The header.
    pub header: ReplyHeader,
    /// The body, if the header reports success.
    pub response: Option<Response>,
    /// The frame as received, without its length prefix.
    pub frame: Bytes,
}

/// A bare client for tests, with one session on one link. It sends only what it is asked to send: no pings,
/// no retries.
///
/// # On drop
/// The link is closed, and the session continues until it times out.
#[derive(Debug)]
pub struct RawClient {
    stream: NetStream,
    received: BytesMut,
    frames: Frames,
    session: ConnectResponse,
    next_xid: i32,
    pending: VecDeque<(i32, OpCode)>,
    events: VecDeque<WatchEvent>,
}

impl RawClient {
    /// Opens a session on loopback.
    ///
    /// # Errors
    /// If the link fails.
    pub async fn open(server: impl ToSocketAddrs, timeout: Duration) -> Result<Self, RawError> {
        Self::attach(server, &new_session(timeout)).await
    }

    /// Opens a session on a network.
    ///
    /// # Errors
    /// If the link fails.
    pub async fn open_on(net: &Net, server: SocketAddr, timeout: Duration) -> Result<Self, RawError> {
        Self::attach_on(net, server, &new_session(timeout)).await
    }

    /// Opens a session on loopback or attaches to one, with `connect` as the first frame.
    ///
    /// # Errors
    /// [`RawError::Gone`] if the session to attach to has expired.
    pub async fn attach(server: impl ToSocketAddrs, connect: &ConnectRequest) -> Result<Self, RawError> {
        let address = lookup_host(server).await?.next().ok_or(io::ErrorKind::AddrNotAvailable);
        Self::attach_on(&Net::Loopback, address.map_err(io::Error::from)?, connect).await
    }

    /// Does the same as [`attach`](Self::attach), on a network.
    ///
    /// # Errors
    /// See [`attach`](Self::attach).
    pub async fn attach_on(
        net: &Net,
        server: SocketAddr,
        connect: &ConnectRequest,
    ) -> Result<Self, RawError> {
        let stream = net.connect(server).await?;
        let mut client = Self {
            stream,
            received: BytesMut::new(),
            frames: Frames::new(FRAME_LIMIT),
            session: ConnectResponse {
                timeout_ms: 0,
                session_id: 0,
                password: Bytes::new(),
                read_only: None,
            },
            next_xid: 1,
            pending: VecDeque::new(),
            events: VecDeque::new(),
        };
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| connect.write(out));
        client.stream.write_all(&out).await?;
        client.session = ConnectResponse::decode(client.frame().await?)?;
        if client.session.timeout_ms <= 0 { Err(RawError::Gone(connect.session_id)) } else { Ok(client) }
    }

    /// Returns the server's answer to the handshake: session, password and timeout.
    pub fn session(&self) -> &ConnectResponse {
        &self.session
    }

    /// Sends requests in one write, without waiting. Returns the xid of the last one.
    ///
    /// # Errors
    /// If the link fails.
    pub async fn send(&mut self, requests: impl IntoIterator<Item = Request>) -> Result<i32, RawError> {
        let mut out = BytesMut::new();
        let mut last = 0;
        for request in requests {
            last = self.number(request.op());
            self.pending.push_back((last, request.op()));
            RequestFrame { xid: last, request }.encode(&mut out);
        }
        self.stream.write_all(&out).await?;
        Ok(last)
    }

    /// Waits for the next reply. Watch events that arrive before it are kept for [`event`](Self::event).
    ///
    /// # Errors
    /// If the link fails, or nothing arrives for 30 s.
    pub async fn reply(&mut self) -> Result<Reply, RawError> {
        loop {
            let frame = self.frame().await?;
            if let Some(reply) = self.understand(frame)? {
                return Ok(reply);
            }
        }
    }

    /// Sends a request and waits for its reply, whatever its result.
    ///
    /// # Errors
    /// If the link fails.
    pub async fn ask(&mut self, request: Request) -> Result<Reply, RawError> {
        let number = self.send([request]).await?;
        loop {
            let reply = self.reply().await?;
            if reply.header.xid == number {
                return Ok(reply);
            }
        }
    }

    /// Sends a request and waits for its success.
    ///
    /// # Errors
    /// [`RawError::Refused`] if the server refuses the request.
    pub async fn call(&mut self, request: Request) -> Result<Response, RawError> {
        let reply = self.ask(request).await?;
        reply.response.ok_or(RawError::Refused(reply.header.code))
    }

    /// Waits for the next watch event.
    ///
    /// # Errors
    /// If the link fails, or nothing arrives for 30 s.
    pub async fn event(&mut self) -> Result<WatchEvent, RawError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let frame = self.frame().await?;
            self.understand(frame)?;
        }
    }

    /// Removes and returns the events that arrived before the last reply and were not yet returned.
    pub fn take_events(&mut self) -> Vec<WatchEvent> {
        self.events.drain(..).collect()
    }

    /// Sends `body` as one frame, whatever its contents. Use [`frame`](Self::frame) to receive the answer.
    ///
    /// # Errors
    /// If the link fails.
    pub async fn send_frame(&mut self, body: &[u8]) -> Result<(), RawError> {
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| out.extend_from_slice(body));
        Ok(self.stream.write_all(&out).await?)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// If the link fails before the server confirms the end.
    pub async fn close(mut self) -> Result<(), RawError> {
        self.call(Request::CloseSession).await.map(|_| ())
    }

    /// Waits for the next frame of any kind, and returns it without its length prefix.
    ///
    /// # Errors
    /// If the link fails, or nothing arrives for 30 s.
    pub async fn frame(&mut self) -> Result<Bytes, RawError> {
        loop {
            if let Some(frame) = self.frames.next(&mut self.received)? {
                return Ok(frame);
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.received));
            match read.await {
                Ok(Ok(0)) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(read) => read.map(|_| ())?,
                Err(_) => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        }
    }

    fn number(&mut self, op: OpCode) -> i32 {
        match op {
            OpCode::Ping => xid::PING,
            OpCode::Auth => xid::AUTH,
            OpCode::SetWatches | OpCode::SetWatches2 => xid::SET_WATCHES,
            _ => {
                self.next_xid += 1;
                self.next_xid - 1
            }
        }
    }

    /// Decodes a reply. Returns `None` for a watch event, which is kept.
    fn understand(&mut self, frame: Bytes) -> Result<Option<Reply>, RawError> {
        let mut body = frame.clone();
        let header = ReplyHeader::decode(body.split_to(HEADER.min(body.len())))?;
        if header.xid == xid::NOTIFICATION {
            self.events.push_back(WatchEvent::decode(body)?);
            return Ok(None);
        }
        let index = self.pending.iter().position(|(number, _)| *number == header.xid);
        let Some((_, op)) = index.and_then(|index| self.pending.remove(index)) else {
            return Err(io::Error::other(format!("reply with xid {} answers no request", header.xid)).into());
        };
        let response = if header.code == Code::OK { Some(Response::decode(op, body)?) } else { None };
        Ok(Some(Reply { header, response, frame }))
    }
}

/// Size of a [`ReplyHeader`] in bytes.
const HEADER: usize = 16;

fn new_session(timeout: Duration) -> ConnectRequest {
    ConnectRequest::new_session(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
}
