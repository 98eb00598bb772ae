use super::abilities::Abilities;
use super::{Credentials, PersistentWatch, Sasl, SessionCloser, Watch, WatchKind};
use docent_proto::{Code, MultiResult, Request, Response};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep};

/// A session, as the rest of core uses it.
pub(crate) trait Session: fmt::Debug + Send + Sync + 'static {
    /// Enqueues `request`. Its position in the order of calls is fixed when this returns.
    ///
    /// One [`Request::SetWatches`] sets watches on the data of several nodes, at any time, as of a
    /// transaction that the session has seen. If the node was deleted or its data has changed since that
    /// transaction, the watch fires immediately and none remains at the server. The request's lists of other
    /// kinds stay empty; `watch_requests` builds the request. Setting the watch needs no permission, but some
    /// servers send no events for a node that the client may not read.
    fn submit(&self, request: Request, lane: Lane) -> Pending;

    /// Like [`submit`](Self::submit) with [`Lane::Call`], for a request that ends at `deadline` at the
    /// latest. A request not written until then is withdrawn; otherwise its outcome is unknown, even if a
    /// reply arrives later. Not for requests that set watches, because the watch of a late reply would have
    /// no subscriber.
    fn submit_until(&self, request: Request, deadline: Instant) -> Pending {
        self.submit(request, Lane::Call).until(deadline)
    }

    /// Like [`submit`](Self::submit), for a request that depends on what the client knows about a node. The
    /// request is sent only while the number of lost links is `losses`, and before `watch` fires or the link
    /// reports a change of a node in the request. Otherwise it ends with
    /// [`Cause::LinkLost`](super::Cause::LinkLost). Events that arrived while the process was stalled count,
    /// if the session [orders events](Self::orders_events).
    fn submit_on(&self, request: Request, lane: Lane, losses: u64, watch: Option<&Watch>) -> Pending;

    /// Returns the cause for which `request` would not be sent now: it is as large as a request on which
    /// servers repeatedly closed the link. `None` in sessions that cannot know.
    fn too_large_for_servers(&self, request: &Request) -> Option<Cause>;

    /// Keeps a persistent watch on `path` and everything below it, in place before any request submitted
    /// after this call. Returns `None` if the server of the link is known not to support persistent watches,
    /// and in sessions that cannot re-create them on a new link.
    fn watch_below(&self, path: &str) -> Option<PersistentWatch>;

    /// Returns true while persistent watches are in place at the server of the link.
    fn has_persistent(&self) -> bool;

    /// Records an ephemeral node of the session whose creation no reply reported.
    fn owns(&self, path: &str);

    /// Returns the full paths of the session's ephemeral nodes, as far as replies reported them.
    fn owned(&self) -> Vec<String>;

    /// Returns true once the session and its nodes have certainly ended: the servers acknowledged its close,
    /// or it was never opened.
    fn has_certainly_ended(&self) -> bool;

    /// Returns the session's id; 0 until the session was attached for the first time.
    fn id(&self) -> i64;

    /// Returns the newest transaction that the session has seen.
    fn last_zxid(&self) -> i64;

    /// Returns a receiver for the state of the link and its changes.
    fn link(&self) -> watch::Receiver<LinkState>;

    /// Returns the reason why this session cannot hold guards, if there is one: its timeout is not known well
    /// enough to derive a lease from it.
    fn refuses_guards(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if the watch events of a link are delivered in the order of their transactions, and a
    /// lost link is counted before anything from the next link is delivered.
    fn orders_events(&self) -> bool;

    /// Ends every waiting call and watch with [`SessionEnd::Closed`] and accepts no more requests of
    /// [`Lane::Call`].
    fn drain(&self);

    /// Returns the means to close the session over a separate link after the client gave it up. `None` if the
    /// session was never opened, or if its password is not known.
    fn closer(&self) -> Option<SessionCloser>;

    /// Gives the session up: nothing more is sent on it. The servers may keep the session for a while.
    fn abandon(&self);

    /// Closes the session at the server, after everything that was submitted earlier.
    fn close(&self);
}

/// End of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SessionEnd {
    /// A server reported that the session has expired. The session may still live on for a while (decision
    /// 25).
    Expired,
    /// The client gave up the session; the servers may keep it for a while.
    Abandoned,
    /// The ensemble was restored from an older snapshot, which may or may not contain the session.
    RolledBack,
    /// The servers refused the client's credentials; they may keep the session for a while.
    AuthFailed,
    /// The client closed the session.
    Closed,
}

impl SessionEnd {
    /// Returns the label used in metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Abandoned => "abandoned",
            Self::RolledBack => "rolled_back",
            Self::AuthFailed => "auth_failed",
            Self::Closed => "closed",
        }
    }
}

/// The link of a session, as the supervisor publishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) up: bool,
    /// True if the server of the link has lost its quorum.
    pub(crate) is_read_only: bool,
    /// Number of times that the link was lost.
    pub(crate) losses: u64,
}

impl LinkState {
    /// No link yet.
    pub(in crate::session) const DOWN: Self = Self { up: false, is_read_only: false, losses: 0 };
}

/// Settings that a session is opened with.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) timeout: Duration,
    /// Newest transaction seen in any session of the client.
    pub(crate) last_zxid: i64,
    /// Maximum number of waiting requests.
    pub(crate) queue_limit: usize,
    /// Largest frame in bytes accepted from a server.
    pub(crate) inbound_limit: usize,
    /// Largest frame in bytes to send, `jute.maxbuffer` of the servers.
    pub(crate) outbound_limit: usize,
    /// Maximum total bytes of the paths of the session's ephemeral nodes.
    pub(crate) ephemeral_limit: usize,
    /// Sent on every new link before anything else.
    pub(crate) credentials: Vec<Credentials>,
    /// Proved on every new link before anything else.
    pub(crate) sasl: Option<Sasl>,
    /// True for a client that only reads, also from servers that have lost their quorum.
    pub(crate) only_reads: bool,
    /// What the client has learned about its servers.
    pub(crate) abilities: Arc<Abilities>,
}

/// Queue and limits that apply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Limited by the queue's size.
    Call,
    /// Like `Call`, but its creates leave part of the session's allowance of nodes to calls.
    Claim,
    /// No limit, because deletes of the client's own nodes must get through. Bounded by the number of live
    /// nodes.
    Cleanup,
    /// No limit, and ahead of everything that waits: the check that keeps the lease and changes nothing.
    /// There is at most one at a time.
    Lease,
}

impl Lane {
    /// Returns true for a request of a user's call, which ends once the client closes.
    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::Claim)
    }
}

/// Outcome of a request. Each request has exactly one.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The server replied.
    Reply(Reply),
    /// The request never left the process, and was certainly not applied.
    NotSent(Cause),
    /// The request was written and no reply arrived. It may have been applied.
    Unknown(Cause),
}

impl Outcome {
    /// Returns the server's answer to the request, or the cause for which there is none. A server that has
    /// ended the session, or that currently accepts no requests, gives no answer either.
    pub(crate) fn answer(self) -> Result<Reply, Cause> {
        match self {
            Self::Reply(Reply { result: Err(Code::SESSION_EXPIRED), .. }) => {
                Err(Cause::Ended(SessionEnd::Expired))
            }
            Self::Reply(Reply { result: Err(Code::THROTTLED), .. }) => Err(Cause::QueueFull),
            Self::Reply(reply) => Ok(reply),
            Self::NotSent(cause) | Self::Unknown(cause) => Err(cause),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    LinkLost,
    Ended(SessionEnd),
    Deadline,
    /// The client's own queue is full, or the server is too busy.
    QueueFull,
    /// The request, or the reply to a request that was sent, exceeds the limit of this client. Or the request
    /// is within that limit, but servers closed the link on it.
    TooLarge {
        size: usize,
        limit: usize,
    },
    /// The session's ephemeral nodes would have more bytes of paths than the servers are certain to handle.
    TooManyEphemerals {
        bytes: usize,
        limit: usize,
    },
}

/// A server's reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) result: Result<Response, Code>,
    /// Newest transaction that the server had applied, as far as the session knows.
    pub(crate) zxid: i64,
    /// The watch that the request set, if it asked for one and the server set it. On the heap, because few
    /// requests do.
    pub(crate) watch: Option<Box<Watch>>,
    /// Watches that a [`Request::SetWatches`] has set, in the order of its paths. Some may have fired before
    /// the reply.
    pub(crate) watches: Vec<Watch>,
}

impl Reply {
    /// Creates a reply to a request that set no watches.
    pub(crate) fn new(result: Result<Response, Code>, zxid: i64) -> Self {
        Self { result, zxid, watch: None, watches: Vec::new() }
    }

    /// Returns the code with which the server refused the request, or `None` if the server applied it.
    pub(crate) fn refusal(&self) -> Option<Code> {
        match &self.result {
            Ok(Response::Multi(results)) => MultiResult::first_failure(results).map(|(_, code)| code),
            Ok(_) => None,
            Err(code) => Some(*code),
        }
    }
}

/// A submitted request. Dropping it withdraws the request if it was not written yet.
#[derive(Debug)]
pub(crate) struct Pending {
    state: PendingState,
    /// Timer for the deadline, if the session does not enforce it.
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
enum PendingState {
    /// On the heap, because an outcome is rarely known immediately.
    Ready(Option<Box<Outcome>>),
    Waiting {
        outcome: oneshot::Receiver<Outcome>,
        id: u64,
        session: Arc<dyn Withdraw>,
    },
}

/// Lets requests and watches withdraw themselves from their session.
pub(crate) trait Withdraw: fmt::Debug + Send + Sync {
    /// Withdraws a request. Returns true if it was not written and never will be.
    fn withdraw(&self, id: u64) -> bool;
    /// Removes a subscriber of a watch.
    fn unregister(&self, id: u64, path: &str, kind: WatchKind);
}

impl Pending {
    pub(crate) fn ready(outcome: Outcome) -> Self {
        Self { state: PendingState::Ready(Some(Box::new(outcome))), timer: None }
    }

    /// Creates a request whose outcome was already taken.
    pub(crate) fn taken() -> Self {
        Self { state: PendingState::Ready(None), timer: None }
    }

    pub(crate) fn waiting(outcome: oneshot::Receiver<Outcome>, id: u64, session: Arc<dyn Withdraw>) -> Self {
        Self { state: PendingState::Waiting { outcome, id, session }, timer: None }
    }

    pub(super) fn until(mut self, deadline: Instant) -> Self {
        self.timer = Some(Box::pin(tokio::time::sleep_until(deadline)));
        self
    }

    /// Waits for the outcome until `deadline`. Then withdraws the request, or returns that its outcome is
    /// unknown. In the latter case a reply may still arrive, and this method can be awaited again.
    pub(crate) async fn by(&mut self, deadline: Instant) -> Outcome {
        match tokio::time::timeout_at(deadline, &mut *self).await {
            Ok(outcome) => outcome,
            Err(_) => self.too_late(),
        }
    }

    fn too_late(&mut self) -> Outcome {
        if self.withdraw() { Outcome::NotSent(Cause::Deadline) } else { Outcome::Unknown(Cause::Deadline) }
    }

    /// Withdraws the request. Returns true if the request was certainly not sent and never will be.
    pub(crate) fn withdraw(&mut self) -> bool {
        let PendingState::Waiting { id, session, .. } = &self.state else { return false };
        let withdrawn = session.withdraw(*id);
        if withdrawn {
            self.state = PendingState::Ready(None);
        }
        withdrawn
    }

    /// Withdraws the request, for a caller that stops waiting for its outcome. Returns true if the request
    /// may be applied because it was sent. `has_ended` says that the session has ended.
    pub(crate) async fn give_up(&mut self, has_ended: bool) -> bool {
        if self.withdraw() || !self.is_open() {
            return false;
        }
        // A session that ends delivers the outcome of each request, including requests that it never sent.
        !has_ended || !matches!(self.await, Outcome::NotSent(_))
    }

    /// Withdraws the request, for a caller that no longer needs its outcome. If it is too late to withdraw
    /// the request, returns it, so that the caller can still await the outcome.
    pub(crate) fn abandon(&mut self) -> Option<Self> {
        let will_arrive = self.is_open() && !self.withdraw();
        will_arrive.then(|| std::mem::replace(self, Self::taken()))
    }

    /// Returns true if the outcome has not been taken yet.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, PendingState::Ready(None))
    }
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.state {
            PendingState::Ready(outcome) => {
                *outcome.take().expect("a request has one outcome and is not polled after it")
            }
            PendingState::Waiting { outcome, .. } => match Pin::new(outcome).poll(cx) {
                Poll::Pending => match &mut self.timer {
                    None => return Poll::Pending,
                    Some(timer) => {
                        ready!(timer.as_mut().poll(cx));
                        self.too_late()
                    }
                },
                Poll::Ready(outcome) => {
                    // Only a runtime that shuts down drops the driver while it holds requests.
                    outcome.unwrap_or(Outcome::Unknown(Cause::Ended(SessionEnd::Abandoned)))
                }
            },
        };
        self.state = PendingState::Ready(None);
        Poll::Ready(outcome)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.withdraw();
    }
}
