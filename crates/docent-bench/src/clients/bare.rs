use super::client::{Client, SESSION_TIMEOUT};
use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use docent_proto::{
    Acl, Code, ConnectRequest, ConnectResponse, Create, CreateMode, Frames, OpCode, Reader, Record,
    ReplyHeader, Request, RequestFrame, Response, WatchEvent, write_frame, xid,
};
use std::collections::VecDeque;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum length of a reply in bytes.
const FRAME_LIMIT: usize = 64 << 20;

/// The lower bound: one socket that the caller writes to and reads from directly. It has no tasks, no
/// deadlines, no heartbeat and no reconnect, supports watches only by returning their events as they arrive,
/// and cannot be shared.
#[derive(Debug)]
pub(crate) struct Bare {
    stream: TcpStream,
    frames: Frames,
    input: BytesMut,
    output: BytesMut,
    next_xid: i32,
    in_flight: VecDeque<(i32, OpCode)>,
    events: VecDeque<WatchEvent>,
}

impl Bare {
    /// Adds a request to the next write.
    pub(crate) fn push(&mut self, request: &Request) {
        RequestFrame::encode_parts(self.next_xid, request, &mut self.output);
        self.in_flight.push_back((self.next_xid, request.op()));
        self.next_xid += 1;
    }

    pub(crate) async fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    async fn frame(&mut self) -> Result<Bytes> {
        loop {
            if let Some(frame) = self.frames.next(&mut self.input)? {
                return Ok(frame);
            }
            self.input.reserve(64 * 1024);
            ensure!(self.stream.read_buf(&mut self.input).await? > 0, "the server closed the link");
        }
    }

    /// Returns the reply to the oldest unanswered request. Events that arrive earlier are kept.
    pub(crate) async fn reply(&mut self) -> Result<Response> {
        self.found().await?.context("the node does not exist")
    }

    /// Does the same as [`reply`](Self::reply), but returns `None` if the node does not exist.
    pub(crate) async fn found(&mut self) -> Result<Option<Response>> {
        let (header, reader) = loop {
            let mut reader = Reader::new(self.frame().await?);
            let header = ReplyHeader::read(&mut reader)?;
            if header.xid != xid::NOTIFICATION {
                break (header, reader);
            }
            self.events.push_back(WatchEvent::read(&mut reader)?);
        };
        let (xid, op) = self.in_flight.pop_front().context("no request is in flight")?;
        ensure!(header.xid == xid, "reply {header:?} to request {xid}");
        match header.code {
            Code::OK => Ok(Some(Response::decode(op, reader.into_rest())?)),
            Code::NO_NODE => Ok(None),
            code => bail!("{code} to request {xid}"),
        }
    }

    /// Returns the next watch event, while no reply is awaited.
    pub(crate) async fn event(&mut self) -> Result<WatchEvent> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        let mut reader = Reader::new(self.frame().await?);
        let header = ReplyHeader::read(&mut reader)?;
        ensure!(header.xid == xid::NOTIFICATION, "received the reply {header:?} instead of an event");
        Ok(WatchEvent::read(&mut reader)?)
    }

    pub(crate) async fn call(&mut self, request: &Request) -> Result<Response> {
        self.push(request);
        self.flush().await?;
        self.reply().await
    }

    /// Keeps `in_flight` requests in flight. One write sends as many requests as one read answered.
    async fn many(
        &mut self,
        count: usize,
        in_flight: usize,
        request: impl Fn() -> Request + Send,
    ) -> Result<()> {
        let mut unsent = count;
        while unsent > 0 || !self.in_flight.is_empty() {
            while unsent > 0 && self.in_flight.len() < in_flight {
                self.push(&request());
                unsent -= 1;
            }
            self.flush().await?;
            self.reply().await?;
            while !self.in_flight.is_empty() && self.has_frame() {
                self.reply().await?;
            }
        }
        Ok(())
    }

    fn has_frame(&self) -> bool {
        let length = self.input.first_chunk().map(|length| u32::from_be_bytes(*length) as usize);
        length.is_some_and(|length| self.input.len() >= 4 + length)
    }
}

impl Client for Bare {
    async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (input, mut output) = (BytesMut::new(), BytesMut::new());
        let connect = ConnectRequest::new_session(i32::try_from(SESSION_TIMEOUT.as_millis())?);
        write_frame(&mut output, |out| connect.write(out));
        let (frames, in_flight, events) = (Frames::new(FRAME_LIMIT), VecDeque::new(), VecDeque::new());
        let mut client = Self { stream, frames, input, output, next_xid: 1, in_flight, events };
        client.flush().await?;
        ensure!(ConnectResponse::decode(client.frame().await?)?.timeout_ms > 0, "no session");
        Ok(client)
    }

    async fn get(&mut self, path: &str) -> Result<()> {
        self.call(&get(path)).await.map(drop)
    }

    async fn create(&mut self, prefix: &str) -> Result<String> {
        created(self.call(&create(prefix)).await?)
    }

    async fn delete(&mut self, path: &str) -> Result<()> {
        self.call(&Request::Delete { path: path.to_owned(), version: -1 }).await.map(drop)
    }

    async fn create_and_list(&mut self, prefix: &str, folder: &str) -> Result<String> {
        self.push(&create(prefix));
        self.push(&Request::GetChildren2 { path: folder.to_owned(), watch: false });
        self.flush().await?;
        let path = created(self.reply().await?)?;
        self.reply().await?;
        Ok(path)
    }

    async fn get_many(&mut self, path: &str, count: usize, in_flight: usize) -> Result<()> {
        self.many(count, in_flight, || get(path)).await
    }

    async fn create_many(&mut self, prefix: &str, count: usize, in_flight: usize) -> Result<()> {
        self.many(count, in_flight, || create(prefix)).await
    }

    async fn close(mut self) -> Result<()> {
        self.call(&Request::CloseSession).await.map(drop)
    }
}

fn get(path: &str) -> Request {
    Request::GetData { path: path.to_owned(), watch: false }
}

fn create(prefix: &str) -> Request {
    let mode = CreateMode::EphemeralSequential;
    Request::Create(Create::new(prefix.to_owned(), Bytes::new(), Acl::open(), mode, 0))
}

fn created(response: Response) -> Result<String> {
    match response {
        Response::Created { path, .. } => Ok(path),
        other => bail!("unexpected response {other:?}"),
    }
}
