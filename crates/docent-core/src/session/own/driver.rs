use super::machine::Deliveries;
use crate::session::link::dialer::{Dialer, LinkNews};
use crate::session::link::rollback::newest_transaction;
use crate::session::link::transport::Io;
use crate::session::own::session::SharedMachine;
use crate::session::{LinkError, SessionEnd, Withdraw};
use crate::task::PollOnWake;
use crate::time::{DeadlineTimer, Timestamp};
use bytes::BytesMut;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, timeout_at};

/// Room that a read buffer starts with: most links carry little most of the time.
const READ_LEAST: usize = 2 * 1024;

/// Most room that it gets, once reads fill a smaller one.
const READ_MOST: usize = 64 * 1024;

/// A read buffer with less than this part of its room left is replaced. Frames taken from a buffer keep all
/// of it, so that a new buffer for each read would cost far more memory than the bytes read.
const READ_PART: usize = 4;

/// Times that the driver takes in received bytes before other tasks get their turn: the one that keeps the
/// lease may be among them.
const TURNS: usize = 4;

/// Time from a read of the link after which it is read again before a request is sent that rests on what it
/// has told: the process may have been stalled.
const PAUSE: Duration = Duration::from_millis(1);

/// Capacity of the write buffer kept for the next requests, once a larger one is on its way.
const OUTPUT_KEPT: usize = 64 * 1024;

/// Runs the machine of one session over one link after another, until the session ends.
#[derive(Debug)]
pub(super) struct Driver {
    shared: Arc<SharedMachine>,
    withdraw: Arc<dyn Withdraw>,
    dialer: Dialer,
}

/// Requests that are still open when the driver goes, because its client gave up closing or its runtime is
/// shutting down, end with it.
impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.change(|machine| machine.end(SessionEnd::Closed));
    }
}

/// End of serving a link.
enum Served {
    Lost(LinkError),
    Ended,
}

impl Driver {
    pub(super) fn new(shared: Arc<SharedMachine>, dialer: Dialer) -> Self {
        let withdraw = Arc::clone(&shared) as Arc<dyn Withdraw>;
        Self { shared, withdraw, dialer }
    }

    pub(super) async fn run(mut self) -> SessionEnd {
        let shared = Arc::clone(&self.shared);
        // Replies mostly come long before deadlines do.
        let mut expiry = PollOnWake::new(expire(&shared));
        tokio::select! {
            biased;
            end = self.serve_links() => end,
            never = &mut expiry => match never {},
        }
    }

    async fn serve_links(&mut self) -> SessionEnd {
        loop {
            let io = match self.dial().await {
                Ok(io) => io,
                Err(end) => return end,
            };
            if let Served::Lost(error) = self.serve(io).await {
                tracing::debug!(client = %self.dialer.news().client(), %error, "link is down");
                // Read before `disconnected`, which takes the unanswered requests away.
                let unanswered = self.shared.lock().has_unanswered_writes();
                if error.is_hang_up() {
                    self.shared.lock().hung_up(self.shared.clock.now());
                }
                self.dialer.lost(error, unanswered);
            }
            let now = self.shared.clock.now();
            self.shared.change(|machine| machine.disconnected(now));
            if let Some(end) = self.shared.lock().ended() {
                return end;
            }
            if Box::pin(self.is_rolled_back()).await {
                self.shared.change(|machine| machine.end(SessionEnd::RolledBack));
                return SessionEnd::RolledBack;
            }
        }
    }

    /// Finds out, once servers have refused this client for long enough, whether they are behind the
    /// transactions it has seen.
    async fn is_rolled_back(&mut self) -> bool {
        let (timeout, seen, credentials) = {
            let machine = self.shared.lock();
            (machine.timeout(), machine.seen_zxid(), machine.credentials().to_vec())
        };
        if !self.dialer.suspects_rollback(timeout) {
            return false;
        }
        let limit = self.dialer.attempt_timeout(timeout);
        let ask = async { newest_transaction(self.dialer.next(timeout).await, timeout, &credentials).await };
        match tokio::time::timeout(limit, ask).await {
            Ok(Ok(newest)) if newest < seen => {
                self.dialer.lost(LinkError::RolledBack { newest, seen }, false);
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
        // On the heap: it is large, and gone while there is a link.
        let mut dial = Box::pin(self.dialer.next(timeout));
        let mut alarm = DeadlineTimer::default();
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
                () = poll_fn(|cx| alarm.poll_by(cx, shared.clock.as_ref(), shared.clock.now(), deadline)) => {}
            }
        }
    }

    /// Serves a link until it is lost or the session ends.
    async fn serve(&mut self, io: Box<dyn Io>) -> Served {
        let timeout = self.dialer.attempt_timeout(self.shared.lock().timeout());
        let news = self.dialer.news().clone();
        let (server, now) = (self.dialer.server(), self.shared.clock.now());
        self.shared.lock().dialled(server, now);
        let mut link = ServedLink::new(&self.shared, &self.withdraw, io, timeout);
        let mut removed = PollOnWake::new(self.dialer.removed());
        loop {
            let told = tokio::select! {
                biased;
                told = poll_fn(|cx| link.poll_serve(cx, &news)) => told,
                () = &mut removed => Err(LinkError::Removed),
            };
            match told {
                Ok(News::Attached) => self.dialer.attached(),
                Ok(News::Ended) => return Served::Ended,
                Err(error) => {
                    link.tell_standstill(&news);
                    link.tell_refusal(true, &news);
                    // A server that is behind this client hangs up on its first frame.
                    let refused = !link.heard && error.is_hang_up();
                    return Served::Lost(if refused { LinkError::Refused } else { error });
                }
            }
        }
    }
}

/// Ends requests at their deadlines, whether there is a link or not.
async fn expire(shared: &SharedMachine) -> Infallible {
    loop {
        let Some(expiry) = shared.lock().next_expiry() else {
            shared.sooner.notified().await;
            continue;
        };
        if timeout_at(expiry, shared.sooner.notified()).await.is_err() {
            shared.change(|machine| machine.expire(Instant::now()));
        }
    }
}

/// News about a link.
enum News {
    /// The session is attached.
    Attached,
    /// The session is over.
    Ended,
}

/// Link with its buffers: bytes received and not understood yet, and bytes to send.
struct ServedLink<'a> {
    shared: &'a SharedMachine,
    withdraw: &'a Arc<dyn Withdraw>,
    io: Box<dyn Io>,
    input: BytesMut,
    /// Room that the input gets when it is replaced.
    room: usize,
    output: Vec<u8>,
    /// Bytes of the output that are on their way.
    sent: usize,
    /// Set when there is more to send once the output is on its way.
    more: bool,
    /// Set when the input may hold more complete frames.
    unread: bool,
    /// Set once something was received.
    heard: bool,
    attached: bool,
    /// Time of the next call of the machine if nothing happens.
    deadline: Option<Timestamp>,
    /// Such a time of which it was told that it passed long ago.
    told_late: Option<Timestamp>,
    alarm: DeadlineTimer,
    deliveries: Deliveries,
}

impl<'a> ServedLink<'a> {
    fn new(
        shared: &'a SharedMachine,
        withdraw: &'a Arc<dyn Withdraw>,
        io: Box<dyn Io>,
        timeout: Duration,
    ) -> Self {
        let mut link = Self {
            shared,
            withdraw,
            io,
            input: BytesMut::with_capacity(READ_LEAST),
            room: READ_LEAST,
            output: Vec::new(),
            sent: 0,
            more: false,
            unread: false,
            heard: false,
            attached: false,
            deadline: None,
            told_late: None,
            alarm: DeadlineTimer::default(),
            deliveries: Deliveries::default(),
        };
        let now = shared.clock.now();
        shared.change(|machine| machine.connected(now, now + timeout, &mut link.output));
        link
    }

    /// Reads replies, writes submitted requests and looks at the time, until there is nothing to do. Received
    /// bytes come first: after a pause of the process, the reply that the machine waits for may be there
    /// already. However much is received, due requests are sent in between, and other tasks have their turn.
    fn poll_serve(&mut self, cx: &mut Context<'_>, news: &LinkNews) -> Poll<Result<News, LinkError>> {
        // A request that is submitted from here on wakes the task again.
        let rung = self.shared.bell.poll_rung(cx).is_ready();
        let mut asked = rung || self.deadline.is_none() || self.more && self.output.is_empty();
        let mut turns = TURNS;
        loop {
            let begun = self.shared.clock.now();
            let received = self.unread || self.poll_receive(cx)?.is_ready();
            let now = self.shared.clock.now();
            let due = self.deadline.filter(|deadline| now >= *deadline);
            if let Some(deadline) = due.filter(|_| !received) {
                news.instruments.late(now.since(deadline));
            }
            if due.is_some() {
                self.tell_standstill(news);
                self.release();
            }
            if (received || asked || due.is_some())
                && let Some(found) = self.advance(begun, now, received, due.is_some())?
            {
                return Poll::Ready(Ok(found));
            }
            self.tell_refusal(received, news);
            self.poll_send(cx)?;
            asked = self.more && self.output.is_empty();
            turns -= usize::from(received);
            if turns == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !received && !asked {
                ready!(self.alarm.poll_by(cx, self.shared.clock.as_ref(), now, self.deadline));
            }
        }
    }

    /// Gives back the room of large replies and requests. The machine is called for a time mostly when
    /// nothing was sent for a while.
    fn release(&mut self) {
        if self.input.is_empty() && self.room > READ_LEAST {
            self.room = READ_LEAST;
            self.input = BytesMut::with_capacity(READ_LEAST);
        }
        if self.output.is_empty() {
            self.output.shrink_to(READ_LEAST);
        }
    }

    /// Tells that the server of the link has no persistent watches.
    fn tell_refusal(&self, received: bool, news: &LinkNews) {
        if received && self.shared.lock().take_refusal() {
            let (client, server) = (news.client(), news.server());
            tracing::info!(%client, server, "the server has no persistent watches: one-shot ones are used");
        }
    }

    /// Tells when the time of the next call of the machine passed so long ago that a heartbeat was missed.
    fn tell_standstill(&mut self, news: &LinkNews) {
        let Some(deadline) = self.deadline.filter(|deadline| self.told_late != Some(*deadline)) else {
            return;
        };
        let late = self.shared.clock.now().since(deadline);
        let pulse = self.shared.lock().timing().pulse();
        if !pulse.is_zero() && late >= pulse {
            self.told_late = Some(deadline);
            news.stood_still(late);
        }
    }

    /// Gives the machine the received bytes and the time, and takes from it the bytes to send and the time of
    /// its next call. The link was last read after `begun`.
    fn advance(
        &mut self,
        begun: Timestamp,
        now: Timestamp,
        received: bool,
        due: bool,
    ) -> Result<Option<News>, LinkError> {
        let clock = &self.shared.clock;
        self.shared.change_with(&mut self.deliveries, |machine| {
            if received {
                self.unread = machine.received(now, &mut self.input, self.withdraw)?;
            }
            if due {
                machine.tick(now)?;
            }
            if machine.ended().is_some() {
                return Ok(Some(News::Ended));
            }
            // More may have come while the process was stalled.
            let is_drained = !received && clock.now().since(begun) < PAUSE;
            self.more = machine.write(now, is_drained, &mut self.output);
            self.deadline = machine.next_deadline();
            let attached = machine.link_state().up;
            let news = (attached && !self.attached).then_some(News::Attached);
            self.attached = attached;
            Ok(news)
        })
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.sent < self.output.len() {
            match Pin::new(&mut self.io).poll_write(cx, &self.output[self.sent..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => self.sent += sent,
                Poll::Pending => return Ok(()),
            }
        }
        self.sent = 0;
        self.output.clear();
        self.output.shrink_to(OUTPUT_KEPT);
        let _ = Pin::new(&mut self.io).poll_flush(cx)?;
        Ok(())
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, LinkError> {
        if self.input.capacity() - self.input.len() < self.room / READ_PART {
            self.input.reserve(self.room);
        }
        let room = self.input.capacity() - self.input.len();
        match tokio_util::io::poll_read_buf(Pin::new(&mut self.io), cx, &mut self.input)? {
            Poll::Ready(0) => Err(LinkError::ClosedByServer),
            Poll::Ready(read) => {
                self.heard = true;
                if read == room {
                    self.room = (4 * self.room).min(READ_MOST);
                }
                Ok(Poll::Ready(()))
            }
            Poll::Pending => Ok(Poll::Pending),
        }
    }
}

#[cfg(test)]
mod tests;
