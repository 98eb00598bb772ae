use super::session::ObserverSession;
use crate::controls::Controls;
use crate::server::PORT;
use crate::wire::Wire;
use bytes::{Bytes, BytesMut};
use docent_checker::{ClientRecorder, Received, WatcherLink};
use docent_proto::{
    Code, ConnectResponse, Frames, OpCode, Reader, Record, ReplyHeader, Request, RequestFrame, Response,
    WatchEvent, write_frame, xid,
};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use turmoil::net::TcpStream;

/// Limit of a frame's length, larger than any frame of a run.
const LONGEST_FRAME: usize = 16 << 20;

/// Records of all links of a run.
pub(super) type Links = Rc<RefCell<Vec<WatcherLink>>>;

/// A link to a server, with one request at a time. Records everything that arrives.
pub(super) struct ObserverLink {
    wire: Wire,
    received: BytesMut,
    last: i32,
    recorder: ClientRecorder,
    links: Links,
    /// Index of the link's record among those of all links.
    place: usize,
    /// How long to wait for a reply.
    patience: Duration,
}

impl ObserverLink {
    /// Connects to a server, and opens or resumes a session. Returns `None` if the session has ended.
    pub(super) async fn open(
        server: &str,
        session: &mut ObserverSession,
        (folder, timeout_of_session): (&str, Duration),
        (controls, recorder, links): (&Controls, &ClientRecorder, &Links),
    ) -> io::Result<Option<Self>> {
        let patience = timeout_of_session / 3;
        let stream = timeout(patience, TcpStream::connect((server, PORT))).await??;
        let mut link = Self {
            wire: Wire::new(stream, controls.clone(), Some(recorder.clone())),
            received: BytesMut::new(),
            last: 0,
            recorder: recorder.clone(),
            links: Rc::clone(links),
            place: 0,
            patience,
        };
        let timeout_ms = i32::try_from(timeout_of_session.as_millis()).unwrap_or(i32::MAX);
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| session.connect(timeout_ms).write(out));
        link.send(&out).await?;
        let frame = timeout(patience, link.frame()).await??;
        let response = ConnectResponse::decode(frame).map_err(malformed)?;
        if !session.connected(&response) {
            return Ok(None);
        }
        let mut all = links.borrow_mut();
        link.place = all.len();
        let (session, folder) = (response.session_id, folder.to_owned());
        all.push(WatcherLink { session, folder, received: Vec::new() });
        drop(all);
        Ok(Some(link))
    }

    /// Sends a request and waits for its reply. Events that arrive before the reply are recorded. If no reply
    /// arrives, these events are discarded, because the request may have set the watch that reported them.
    pub(super) async fn request(
        &mut self,
        session: &mut ObserverSession,
        request: Request,
    ) -> io::Result<Result<Response, Code>> {
        let before = self.links.borrow()[self.place].received.len();
        let result = self.answer(session, request).await;
        if result.is_err() {
            self.links.borrow_mut()[self.place].received.truncate(before);
        }
        result
    }

    async fn answer(
        &mut self,
        session: &mut ObserverSession,
        request: Request,
    ) -> io::Result<Result<Response, Code>> {
        let number = self.number(request.op());
        let mut out = BytesMut::new();
        RequestFrame::encode_parts(number, &request, &mut out);
        self.send(&out).await?;
        let end = Instant::now() + self.patience;
        loop {
            let frame = timeout_at(end, self.frame()).await??;
            let Some((header, body)) = self.understand(session, frame)? else { continue };
            if header.xid != number {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let result = match header.code {
                Code::OK => Ok(Response::decode(request.op(), body).map_err(malformed)?),
                code => Err(code),
            };
            session.newest = session.newest.max(header.zxid);
            self.record(Received::Reply { request, zxid: header.zxid, result: result.clone() });
            return Ok(result);
        }
    }

    /// Records the events that arrive within `span`.
    pub(super) async fn listen(&mut self, session: &mut ObserverSession, span: Duration) -> io::Result<()> {
        let end = Instant::now() + span;
        while let Ok(frame) = timeout_at(end, self.frame()).await {
            if self.understand(session, frame?)?.is_some() {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    /// Decodes a reply. An event is recorded, and `None` is returned.
    fn understand(
        &self,
        session: &mut ObserverSession,
        frame: Bytes,
    ) -> io::Result<Option<(ReplyHeader, Bytes)>> {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::read(&mut reader).map_err(malformed)?;
        let body = reader.into_rest();
        if header.xid != xid::NOTIFICATION {
            return Ok(Some((header, body)));
        }
        let event = WatchEvent::decode(body).map_err(malformed)?;
        session.note_event(&event);
        self.record(Received::Event { event, zxid: header.zxid });
        Ok(None)
    }

    fn record(&self, received: Received) {
        self.links.borrow_mut()[self.place].received.push((self.recorder.now(), received));
    }

    fn number(&mut self, op: OpCode) -> i32 {
        match op {
            OpCode::Auth => xid::AUTH,
            OpCode::SetWatches2 => xid::SET_WATCHES,
            _ => {
                self.last += 1;
                self.last
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.write_all(bytes).await?;
        timeout(self.patience, self.wire.flush()).await?
    }

    async fn frame(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(frame) = Frames::new(LONGEST_FRAME).next(&mut self.received).map_err(malformed)? {
                return Ok(frame);
            }
            if self.wire.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn malformed(error: docent_proto::DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
