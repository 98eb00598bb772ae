use super::machine::Deliveries;
use crate::session::abilities::Ability;
use crate::session::link::dialer::{Dialer, LinkStatus};
use crate::session::link::newest_transaction;
use crate::session::link::transport::Io;
use crate::session::own::session::SharedMachine;
use crate::session::sasl::{BegunSasl, Sasl, SaslExchange};
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

/// Initial capacity of a read buffer in bytes, because most links carry little most of the time.
const READ_MIN: usize = 2 * 1024;

/// Maximum capacity of a read buffer in bytes, reached when reads fill a smaller one.
const READ_MAX: usize = 64 * 1024;

/// A read buffer is replaced if less than this fraction of its capacity is free. Frames taken from a buffer
/// keep all of it in memory, so a new buffer for each read would cost far more memory than the bytes read.
const READ_PART: usize = 4;

/// Number of times that the driver processes received bytes, or has more to send, before it yields to other
/// tasks. The task that keeps the lease may be among them.
const MAX_ROUNDS: usize = 4;

/// Time after a read of the link before the driver reads it again, if it is about to send a request that
/// depends on received events. The process may have been stalled in between.
const PAUSE: Duration = Duration::from_millis(1);

/// Capacity of the write buffer kept for the next requests after a larger one was written.
const OUTPUT_CAPACITY: usize = 64 * 1024;

/// Runs the machine of one session over one link after another, until the session ends.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) shared: Arc<SharedMachine>,
    pub(super) dialer: Dialer,
}

/// Ends the requests that are still open when the driver is dropped, because its client stopped waiting for
/// the close or its runtime is shutting down.
impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.change(|machine| machine.end(SessionEnd::Closed));
    }
}

impl Driver {
    pub(super) async fn run(mut self) -> SessionEnd {
        let shared = Arc::clone(&self.shared);
        // Replies usually arrive long before deadlines expire.
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
            if let Err(error) = self.serve(io).await {
                // Event: The connection of a session to its server was lost; the field `error` says why. The
                // client reconnects.
                tracing::debug!(target: "docent::session", client = %self.dialer.ensemble.link_status.client(), %error, "connection lost; reconnecting");
                // Read before `disconnected`, which removes the unanswered requests.
                let unanswered = self.shared.lock().requests.has_unanswered_writes();
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

    /// Checks whether the servers are behind the transactions that this client has seen, once servers have
    /// refused the client for long enough.
    async fn is_rolled_back(&mut self) -> bool {
        let (timeout, seen, settings) = {
            let machine = self.shared.lock();
            (machine.timeout, machine.seen_zxid(), machine.settings.clone())
        };
        if !self.dialer.ensemble.link_status.suspects_rollback(timeout) {
            return false;
        }
        let limit = self.dialer.attempt_timeout(timeout);
        let dialer = &mut self.dialer;
        let newest = async {
            let io = dialer.next(timeout).await;
            newest_transaction(io, dialer.host(), timeout, &settings).await
        };
        match tokio::time::timeout(limit, newest).await {
            Ok(Ok(newest)) if newest < seen => {
                self.dialer.lost(LinkError::RolledBack { newest, seen }, false);
                true
            }
            Ok(Ok(_)) => {
                self.dialer.ensemble.link_status.not_rolled_back();
                false
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Finds the next server, unless the session ends first.
    async fn dial(&mut self) -> Result<Box<dyn Io>, SessionEnd> {
        let shared = Arc::clone(&self.shared);
        let (timeout, sasl) = {
            let machine = shared.lock();
            (machine.timeout, machine.settings.sasl.clone())
        };
        // On the heap, because it is large and is not needed while there is a link.
        let mut dial = Box::pin(next_link(&mut self.dialer, sasl.as_ref(), timeout));
        let mut alarm = DeadlineTimer::default();
        loop {
            // While the link is down, `tick` cannot report an error of the link.
            let _ = shared.change(|machine| machine.tick(shared.clock.now()));
            let (ended, deadline) = {
                let machine = shared.lock();
                (machine.ended(), machine.next_deadline())
            };
            if let Some(end) = ended {
                return Err(end);
            }
            tokio::select! {
                (io, begun) = &mut dial => {
                    shared.lock().begun_sasl = begun.map(Box::new);
                    return Ok(io);
                }
                () = poll_fn(|cx| shared.bell.poll_rung(cx)) => {}
                () = poll_fn(|cx| alarm.poll_by(cx, shared.clock.as_ref(), shared.clock.now(), deadline)) => {}
            }
        }
    }

    /// Serves a link until the session ends. An error is the reason why the link was lost before.
    async fn serve(&mut self, io: Box<dyn Io>) -> Result<(), LinkError> {
        let timeout = self.dialer.attempt_timeout(self.shared.lock().timeout);
        let link_status = self.dialer.ensemble.link_status.clone();
        let (server, now) = (self.dialer.server(), self.shared.clock.now());
        self.shared.lock().dialled(server, self.dialer.is_again(), now);
        let mut link = ServedLink::new(&self.shared, io, timeout);
        let mut removed = PollOnWake::new(self.dialer.removed());
        loop {
            let served = tokio::select! {
                biased;
                served = poll_fn(|cx| link.poll_serve(cx, &link_status)) => served,
                () = &mut removed => Err(LinkError::Removed),
            };
            match served {
                Ok(LinkEvent::Attached) => self.dialer.attached(),
                Ok(LinkEvent::Ended) => {
                    link.log_refusals(&link_status);
                    self.dialer.ended();
                    if let Some(refusal) = self.shared.lock().refusal() {
                        self.dialer.refused(refusal);
                    }
                    return Ok(());
                }
                Err(error) if error.is_hang_up() && self.shared.lock().awaits_sasl() => {
                    return Err(LinkError::SaslHangUp);
                }
                Err(error) => {
                    link.report_stall(&link_status);
                    link.log_refusals(&link_status);
                    // A server that is behind this client closes the link on its first frame.
                    let refused = !link.received_any && error.is_hang_up();
                    return Err(if refused { LinkError::Refused } else { error });
                }
            }
        }
    }
}

/// Connects to the next reachable server, and begins the authentication there.
async fn next_link(
    dialer: &mut Dialer,
    sasl: Option<&Sasl>,
    timeout: Duration,
) -> (Box<dyn Io>, Option<BegunSasl>) {
    loop {
        let io = dialer.next(timeout).await;
        let Some(sasl) = sasl else {
            return (io, None);
        };
        let limit = dialer.attempt_timeout(timeout);
        // Only Kerberos takes time.
        dialer.waits_for(|server| LinkError::Ticket { server });
        let begun = SaslExchange::begin(sasl, dialer.host(), limit).await;
        dialer.waits_for(|server| LinkError::Greeting { server });
        match begun {
            Ok(begun) => return (io, Some(begun)),
            Err(error) => dialer.lost(error.into(), false),
        }
    }
}

/// Ends requests at their deadlines, whether or not there is a link.
async fn expire(shared: &SharedMachine) -> Infallible {
    loop {
        let Some(expiry) = shared.lock().requests.next_expiry else {
            shared.sooner.notified().await;
            continue;
        };
        if timeout_at(expiry, shared.sooner.notified()).await.is_err() {
            shared.change(|machine| machine.expire(Instant::now()));
        }
    }
}

/// What happened on a link.
enum LinkEvent {
    /// The session was attached.
    Attached,
    /// The session has ended.
    Ended,
}

/// A link with its buffers: bytes received but not decoded yet, and bytes to send.
struct ServedLink<'a> {
    shared: &'a Arc<SharedMachine>,
    io: Box<dyn Io>,
    input: BytesMut,
    /// Capacity that the input gets when it is replaced.
    room: usize,
    output: Vec<u8>,
    /// Number of bytes of the output that were already written.
    sent: usize,
    /// True if there is more to send once the output is written.
    more: bool,
    /// True if the input may hold more complete frames.
    unread: bool,
    /// True once something was received.
    received_any: bool,
    attached: bool,
    /// Time of the next call of the machine if nothing happens.
    deadline: Option<Timestamp>,
    /// The last overdue deadline that was logged.
    reported_late: Option<Timestamp>,
    alarm: DeadlineTimer,
    deliveries: Deliveries,
}

impl<'a> ServedLink<'a> {
    fn new(shared: &'a Arc<SharedMachine>, io: Box<dyn Io>, timeout: Duration) -> Self {
        let mut link = Self {
            shared,
            io,
            input: BytesMut::with_capacity(READ_MIN),
            room: READ_MIN,
            output: Vec::new(),
            sent: 0,
            more: false,
            unread: false,
            received_any: false,
            attached: false,
            deadline: None,
            reported_late: None,
            alarm: DeadlineTimer::default(),
            deliveries: Deliveries::default(),
        };
        let now = shared.clock.now();
        shared.change(|machine| machine.connected(now, now + timeout, &mut link.output));
        link
    }

    /// Reads replies, writes submitted requests and checks the time, until there is nothing left to do.
    /// Received bytes come first: after a pause of the process, the reply that the machine waits for may
    /// already have arrived. However much is received, due requests are sent in between, and other tasks get
    /// their turn.
    fn poll_serve(
        &mut self,
        cx: &mut Context<'_>,
        link_status: &LinkStatus,
    ) -> Poll<Result<LinkEvent, LinkError>> {
        // A request submitted after this line wakes the task again.
        let rung = self.shared.bell.poll_rung(cx).is_ready();
        let mut asked = rung || self.deadline.is_none() || self.more && self.output.is_empty();
        let mut turns = MAX_ROUNDS;
        loop {
            let begun = self.shared.clock.now();
            let received = self.unread || self.poll_receive(cx)?.is_ready();
            let now = self.shared.clock.now();
            let due = self.deadline.filter(|deadline| now >= *deadline);
            if let Some(deadline) = due.filter(|_| !received) {
                link_status.instruments.late(now.since(deadline));
            }
            if due.is_some() {
                self.report_stall(link_status);
                self.release();
            }
            if (received || asked || due.is_some())
                && let Some(found) = self.advance(begun, now, received, due.is_some())?
            {
                return Poll::Ready(Ok(found));
            }
            if received {
                self.log_refusals(link_status);
            }
            self.poll_send(cx)?;
            asked = self.more && self.output.is_empty();
            turns -= usize::from(received || asked);
            if turns == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !received && !asked {
                ready!(self.alarm.poll_by(cx, self.shared.clock.as_ref(), now, self.deadline));
            }
        }
    }

    /// Frees the memory of large replies and requests. Timed calls of the machine happen mostly when nothing
    /// was sent for a while.
    fn release(&mut self) {
        if self.input.is_empty() && self.room > READ_MIN {
            self.room = READ_MIN;
            self.input = BytesMut::with_capacity(READ_MIN);
        }
        if self.output.is_empty() {
            self.output.shrink_to(READ_MIN);
        }
    }

    /// Logs what the server of the link does not support.
    fn log_refusals(&self, link_status: &LinkStatus) {
        let unlogged = self.shared.lock().settings.abilities.take_unlogged();
        for ability in unlogged {
            let (client, server) = (link_status.client(), link_status.server());
            if ability == Ability::PersistentWatches {
                // Event: The server does not support persistent watches, which need ZooKeeper 3.6 or newer.
                // Caches and views use one-shot watches instead, which cost more requests.
                tracing::info!(target: "docent::session", %client, server, "the server does not support persistent watches; using one-shot watches");
            } else {
                // Event: The servers lack the operations named in the field `lacks`, as older ZooKeepers and
                // ClickHouse Keeper do. The client uses other operations, or refuses what needs these.
                tracing::info!(target: "docent::session", %client, server, lacks = ability.requirement(), "the servers do not support an operation; using other operations");
            }
        }
    }

    /// Logs if the machine's deadline is overdue by at least one heartbeat interval.
    fn report_stall(&mut self, link_status: &LinkStatus) {
        let Some(deadline) = self.deadline.filter(|deadline| self.reported_late != Some(*deadline)) else {
            return;
        };
        let late = self.shared.clock.now().since(deadline);
        let pulse = self.shared.lock().timing().pulse();
        if !pulse.is_zero() && late >= pulse {
            self.reported_late = Some(deadline);
            link_status.record_stall(late);
        }
    }

    /// Passes received bytes and the time to the machine, and takes from it the bytes to send and the time of
    /// its next call. The link was last read after `begun`.
    fn advance(
        &mut self,
        begun: Timestamp,
        now: Timestamp,
        received: bool,
        due: bool,
    ) -> Result<Option<LinkEvent>, LinkError> {
        let clock = &self.shared.clock;
        self.shared.change_with(&mut self.deliveries, |machine| {
            if received {
                let withdraw = Arc::clone(self.shared) as Arc<dyn Withdraw>;
                self.unread = machine.received(now, &mut self.input, &withdraw)?;
            }
            if due {
                machine.tick(now)?;
            }
            if machine.ended().is_some() {
                return Ok(Some(LinkEvent::Ended));
            }
            // More bytes may have arrived while the process was stalled, and more may arrive before older
            // output has left.
            let is_drained = !received && self.output.is_empty() && clock.now().since(begun) < PAUSE;
            self.more = machine.write(now, is_drained, &mut self.output);
            self.deadline = machine.next_deadline();
            let attached = machine.link_state().up;
            let event = (attached && !self.attached).then_some(LinkEvent::Attached);
            self.attached = attached;
            Ok(event)
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
        self.output.shrink_to(OUTPUT_CAPACITY);
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
                self.received_any = true;
                if read == room {
                    self.room = (4 * self.room).min(READ_MAX);
                }
                Ok(Poll::Ready(()))
            }
            Poll::Pending => Ok(Poll::Pending),
        }
    }
}

#[cfg(test)]
mod tests;
