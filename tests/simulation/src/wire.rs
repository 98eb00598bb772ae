use crate::controls::Controls;
use crate::trap::Effect;
use bytes::{Buf, Bytes, BytesMut};
use docent_checker::{ClientRecorder, EventKind, FaultKind};
use docent_proto::{
    ConnectResponse, Frames, Record, ReplyHeader, Request, RequestFrame, WatchEvent, write_frame, xid,
};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::{poll_read_buf, poll_write_buf};
use turmoil::net::TcpStream;

/// Limit of a frame's length, larger than any frame of a run.
const LONGEST_FRAME: usize = 16 << 20;

/// Bytes of a [`ReplyHeader`].
const HEADER: usize = 16;

/// A client's end of a link. Frames pass one by one, are recorded, and may trigger traps.
#[derive(Debug)]
pub(crate) struct Wire {
    /// `None` after the link was reset.
    stream: Option<TcpStream>,
    controls: Controls,
    recorder: Option<ClientRecorder>,
    /// Bytes that the client wrote and that are not a whole frame yet.
    written: BytesMut,
    /// Bytes on their way into the network.
    sending: BytesMut,
    /// Bytes from the network that are not a whole frame yet.
    received: BytesMut,
    /// Bytes that are ready for the client.
    ready: BytesMut,
    connect_sent: bool,
    connected: bool,
    /// Whether the previous frame was an event.
    was_event: bool,
    /// Requests whose replies will not arrive, by their number. That of the handshake is [`HANDSHAKE`].
    trapped: Vec<(i32, Effect)>,
}

/// Stands for the handshake, which has no number.
const HANDSHAKE: i32 = i32::MIN;

impl Wire {
    pub(crate) fn new(stream: TcpStream, controls: Controls, recorder: Option<ClientRecorder>) -> Self {
        let empty = BytesMut::new;
        Self {
            stream: Some(stream),
            controls,
            recorder,
            written: empty(),
            sending: empty(),
            received: empty(),
            ready: empty(),
            connect_sent: false,
            connected: false,
            was_event: false,
            trapped: Vec::new(),
        }
    }

    fn record(&self, kind: impl FnOnce() -> EventKind) {
        if let Some(recorder) = &self.recorder {
            recorder.write(kind());
        }
    }

    /// Forwards whole frames of the client.
    fn take_requests(&mut self) -> io::Result<()> {
        while let Some(frame) = Frames::new(LONGEST_FRAME).next(&mut self.written).map_err(malformed)? {
            let (number, effect) = self.judge_request(&frame);
            match effect {
                Some(Effect::ResetBefore) => return Err(self.reset_after_sending()),
                Some(effect) => self.trapped.push((number, effect)),
                None => {}
            }
            write_frame(&mut self.sending, |out| out.extend_from_slice(&frame));
        }
        Ok(())
    }

    /// Returns a request's number, and the effect of a trap on the request.
    fn judge_request(&mut self, frame: &Bytes) -> (i32, Option<Effect>) {
        if !std::mem::replace(&mut self.connect_sent, true) {
            return (HANDSHAKE, self.controls.spring(None));
        }
        let Ok(RequestFrame { xid, request }) = RequestFrame::decode(frame.clone()) else { return (0, None) };
        if request != Request::Ping {
            let path = request.path().map(str::to_owned);
            self.record(|| EventKind::Requested { op: request.op() as i32, path });
        }
        (xid, self.controls.spring(Some(&request)))
    }

    /// Sends the bytes that were written before the request, as a socket's buffer would, and resets the link.
    fn reset_after_sending(&mut self) -> io::Error {
        if let Some(stream) = &mut self.stream {
            let _ = stream.try_write(&self.sending);
        }
        self.reset(FaultKind::Reset { applied: false })
    }

    /// Forwards whole frames of the server.
    fn take_replies(&mut self) -> io::Result<()> {
        while let Some(frame) = Frames::new(LONGEST_FRAME).next(&mut self.received).map_err(malformed)? {
            let number = self.read_reply(&frame);
            let was_event = std::mem::replace(&mut self.was_event, number == Some(xid::NOTIFICATION));
            if was_event && self.was_event && self.controls.springs_at_next_event() {
                self.reset(FaultKind::Reset { applied: true });
                return Ok(());
            }
            let trapped = self.trapped.iter().position(|(trapped, _)| Some(*trapped) == number);
            match trapped.map(|index| self.trapped.remove(index).1) {
                None => write_frame(&mut self.ready, |out| out.extend_from_slice(&frame)),
                Some(Effect::Swallow) => self.record(|| EventKind::Fault(FaultKind::Swallowed)),
                // The client reads the bytes that are ready first.
                Some(_) => {
                    self.reset(FaultKind::Reset { applied: true });
                    return Ok(());
                }
            }
            if number == Some(xid::NOTIFICATION) {
                self.record_event(frame);
            }
        }
        Ok(())
    }

    /// The number of the request that a frame answers.
    fn read_reply(&mut self, frame: &Bytes) -> Option<i32> {
        if self.connected {
            let header = frame.get(..HEADER).map(Bytes::copy_from_slice)?;
            return ReplyHeader::decode(header).ok().map(|header| header.xid);
        }
        self.connected = true;
        let lost = self.trapped.iter().any(|(number, _)| *number == HANDSHAKE);
        if let (Some(recorder), Ok(response)) = (&self.recorder, ConnectResponse::decode(frame.clone()))
            && response.session_id != 0
            && !lost
        {
            self.controls.attached(response.session_id, recorder.client());
        }
        Some(HANDSHAKE)
    }

    fn record_event(&self, mut frame: Bytes) {
        frame.advance(HEADER);
        if let Ok(event) = WatchEvent::decode(frame) {
            self.record(|| EventKind::Notified { path: event.path });
        }
    }

    fn reset(&mut self, fault: FaultKind) -> io::Error {
        self.record(|| EventKind::Fault(fault));
        self.stream = None;
        was_reset()
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.sending.is_empty() {
            let Some(stream) = &mut self.stream else { return Poll::Ready(Err(was_reset())) };
            ready!(poll_write_buf(Pin::new(stream), cx, &mut self.sending))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.controls.poll_running(cx));
        while this.ready.is_empty() {
            let Some(stream) = &mut this.stream else { return Poll::Ready(Err(was_reset())) };
            this.received.reserve(4 << 10);
            if ready!(poll_read_buf(Pin::new(stream), cx, &mut this.received))? == 0 {
                return Poll::Ready(Ok(()));
            }
            this.take_replies()?;
        }
        let length = this.ready.len().min(buf.remaining());
        buf.put_slice(&this.ready.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.controls.poll_running(cx));
        ready!(this.poll_send(cx))?;
        if this.stream.is_none() {
            return Poll::Ready(Err(was_reset()));
        }
        this.written.extend_from_slice(buf);
        this.take_requests()?;
        // The next flush sends bytes that cannot be sent now. The client flushes after every write.
        if let Poll::Ready(Err(error)) = this.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.controls.poll_running(cx));
        this.poll_send(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.controls.poll_running(cx));
        match &mut this.stream {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

fn was_reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

fn malformed(error: docent_proto::DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
