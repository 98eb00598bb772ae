use super::dialer::Dialer;
use super::rollback::newest_transaction;
use super::transport::Io;
use super::wire::Shared;
use super::{LinkError, SessionEnd, Withdraw};
use crate::clock::{Alarm, Timestamp};
use crate::telemetry;
use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// Most bytes asked of the socket at once, and what a read buffer starts with.
const READ_SIZE: usize = 64 * 1024;

/// A read buffer with less room than this is replaced. The frames taken from a buffer keep all of it, so one for each read
/// would cost far more memory than what is read.
const READ_ROOM: usize = 16 * 1024;

/// Runs the machine of one session over one link after another, until the session ends.
#[derive(Debug)]
pub(super) struct Driver {
    shared: Arc<Shared>,
    withdraw: Arc<dyn Withdraw>,
    dialer: Dialer,
}

/// Requests that are still open when the driver goes, because its client gave up closing or its runtime is shutting down,
/// end with it.
impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.change(|machine| machine.end(SessionEnd::Closed));
    }
}

/// How serving a link ended.
enum Served {
    Lost(LinkError),
    Ended,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, dialer: Dialer) -> Self {
        let withdraw = Arc::clone(&shared) as Arc<dyn Withdraw>;
        Self { shared, withdraw, dialer }
    }

    pub(super) async fn run(mut self) -> SessionEnd {
        loop {
            let io = match self.dial().await {
                Ok(io) => io,
                Err(end) => return end,
            };
            if let Served::Lost(error) = self.serve(io).await {
                tracing::debug!(%error, "link is down");
                self.dialer.lost(error);
            }
            let now = self.shared.clock.now();
            self.shared.change(|machine| machine.link_down(now));
            if let Some(end) = self.shared.lock().ended() {
                return end;
            }
            if self.is_rolled_back().await {
                self.shared.change(|machine| machine.end(SessionEnd::RolledBack));
                return SessionEnd::RolledBack;
            }
        }
    }

    /// Finds out, once servers have refused this client for long enough, whether they are behind what it has seen.
    async fn is_rolled_back(&mut self) -> bool {
        let (timeout, seen) = {
            let machine = self.shared.lock();
            (machine.timeout(), machine.last_zxid())
        };
        if !self.dialer.suspects_rollback(timeout) {
            return false;
        }
        let limit = self.dialer.attempt_timeout(timeout);
        let ask = async { newest_transaction(self.dialer.next(timeout).await, timeout).await };
        match tokio::time::timeout(limit, ask).await {
            Ok(Ok(newest)) if newest < seen => {
                self.dialer.lost(LinkError::RolledBack { newest, seen });
                true
            }
            Ok(Ok(_)) => {
                self.dialer.not_rolled_back();
                false
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Finds the next server, unless the session ends before that.
    async fn dial(&mut self) -> Result<Box<dyn Io>, SessionEnd> {
        let shared = Arc::clone(&self.shared);
        let timeout = shared.lock().timeout();
        let mut dial = pin!(self.dialer.next(timeout));
        let mut alarm = Alarm::default();
        loop {
            // A machine whose link is down has nothing to say about the link.
            let _ = shared.change(|machine| machine.tick(shared.clock.now()));
            let (ended, deadline) = {
                let machine = shared.lock();
                (machine.ended(), machine.next_deadline())
            };
            if let Some(end) = ended {
                return Err(end);
            }
            tokio::select! {
                io = &mut dial => return Ok(io),
                () = poll_fn(|cx| shared.bell.poll_rung(cx)) => {}
                () = poll_fn(|cx| alarm.poll_by(cx, shared.clock.as_ref(), deadline)) => {}
            }
        }
    }

    /// Serves a link until it is lost or the session ends.
    async fn serve(&mut self, io: Box<dyn Io>) -> Served {
        let shared = Arc::clone(&self.shared);
        let mut link = LinkIo::new(io);
        let timeout = self.dialer.attempt_timeout(shared.lock().timeout());
        let now = shared.clock.now();
        shared.change(|machine| machine.link_up(now, now + timeout, &mut link.output));
        let mut attached = false;
        let mut removed = pin!(self.dialer.removed());
        loop {
            let deadline = {
                let mut machine = shared.lock();
                if machine.ended().is_some() {
                    return Served::Ended;
                }
                link.more = machine.write(shared.clock.now(), &mut link.output);
                machine.next_deadline()
            };
            let woken = tokio::select! {
                biased;
                woken = link.wait(&shared, deadline) => woken,
                () = &mut removed => Err(LinkError::Removed),
            };
            if let (Ok(Woken::Deadline), Some(deadline)) = (&woken, deadline) {
                telemetry::late(shared.clock.now().since(deadline));
            }
            let result = woken.and_then(|woken| {
                shared.change(|machine| {
                    // What had been received is looked at before the time is.
                    if let Woken::Received = woken {
                        machine.received(shared.clock.now(), &mut link.input, &self.withdraw)?;
                    }
                    machine.tick(shared.clock.now())
                })
            });
            if let Err(error) = result {
                // A server that is behind this client hangs up on its first frame.
                let refused = !link.heard && error.is_hang_up();
                return Served::Lost(if refused { LinkError::Refused } else { error });
            }
            if !attached && shared.lock().link_state().up {
                attached = true;
                self.dialer.attached();
            }
        }
    }
}

/// Why the driver goes on.
enum Woken {
    Received,
    Rung,
    Deadline,
}

/// A link with what was received and not understood yet, and what is to be sent.
struct LinkIo {
    io: Box<dyn Io>,
    input: BytesMut,
    output: BytesMut,
    /// There is more to send once the output is on its way.
    more: bool,
    /// Something was received.
    heard: bool,
    alarm: Alarm,
}

impl LinkIo {
    fn new(io: Box<dyn Io>) -> Self {
        let (input, output) = (BytesMut::with_capacity(READ_SIZE), BytesMut::new());
        Self { io, input, output, more: false, heard: false, alarm: Alarm::default() }
    }

    /// Sends what there is to send until something is received, a request is submitted or `deadline` comes. What has
    /// been received is seen before the deadline is: after a pause of the process the reply may be there already.
    async fn wait(&mut self, shared: &Shared, deadline: Option<Timestamp>) -> Result<Woken, LinkError> {
        poll_fn(|cx| {
            self.poll_send(cx)?;
            if self.more && self.output.is_empty() {
                return Poll::Ready(Ok(Woken::Rung));
            }
            if self.poll_receive(cx)?.is_ready() {
                self.heard = true;
                return Poll::Ready(Ok(Woken::Received));
            }
            if shared.bell.poll_rung(cx).is_ready() {
                return Poll::Ready(Ok(Woken::Rung));
            }
            self.alarm.poll_by(cx, shared.clock.as_ref(), deadline).map(|()| Ok(Woken::Deadline))
        })
        .await
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.output.is_empty() {
            match Pin::new(&mut self.io).poll_write(cx, &self.output)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => self.output.advance(sent),
                Poll::Pending => return Ok(()),
            }
        }
        let _ = Pin::new(&mut self.io).poll_flush(cx)?;
        Ok(())
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, LinkError> {
        if self.input.capacity() - self.input.len() < READ_ROOM {
            self.input.reserve(READ_SIZE);
        }
        match tokio_util::io::poll_read_buf(Pin::new(&mut self.io), cx, &mut self.input)? {
            Poll::Ready(0) => Err(LinkError::ClosedByServer),
            Poll::Ready(_) => Ok(Poll::Ready(())),
            Poll::Pending => Ok(Poll::Pending),
        }
    }
}
