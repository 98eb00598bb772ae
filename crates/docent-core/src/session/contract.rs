use super::{Credentials, PersistentWatch, SessionCloser, Watch, WatchKind};
use docent_proto::{Code, MultiResult, Request, Response};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep};

/// A session as core uses it.
pub(crate) trait Session: fmt::Debug + Send + Sync + 'static {
    /// Enqueues `request`; it has its place in the order of calls when this returns.
    ///
    /// One [`Request::SetWatches`] sets watches on the data of several nodes, at any time, as of a
    /// transaction the session has seen: a watch on a node that is gone, or whose data has changed since,
    /// fires at once, and none is left at the server then. Its lists of other kinds stay empty;
    /// `watch_requests` makes it. Permissions are not asked; but there are servers that tell nothing of a
    /// node that the client may not read.
    fn submit(&self, request: Request, lane: Lane) -> Pending;

    /// As [`submit`](Self::submit) with [`Lane::Call`], for a request that ends at `deadline` at the latest:
    /// withdrawn if it was not written by then, else with an unknown outcome, also when a reply comes later.
    /// Not for requests that set watches: a watch whose reply came too late would have no subscriber.
    fn submit_until(&self, request: Request, deadline: Instant) -> Pending {
        self.submit(request, Lane::Call).until(deadline)
    }

    /// As [`submit`](Self::submit), for a request that rests on what is known of a node: it is sent only with
    /// `losses` lost links, and before `watch` fires or the link tells of a change of a node of the request.
    /// Else it ends with [`Cause::LinkLost`](super::Cause::LinkLost). What came while the process was stalled
    /// counts, where the session [orders events](Self::orders_events).
    fn submit_on(&self, request: Request, lane: Lane, losses: u64, watch: Option<&Watch>) -> Pending;

    /// The cause for which `request` would not be sent now: it is as large as one on which servers closed
    /// the link again and again. `None` in sessions that cannot know.
    fn too_large_for_servers(&self, request: &Request) -> Option<Cause>;

    /// Keeps a persistent watch on `path` and all below it, from before all requests that are submitted after
    /// this on. `None` where the server of the link is known not to have such watches, and in sessions that
    /// cannot set them again on a new link.
    fn watch_below(&self, path: &str) -> Option<PersistentWatch>;

    /// True while persistent watches are at the server of the link.
    fn has_persistent(&self) -> bool;

    /// Takes note of an ephemeral node of the session that was made although no answer said so.
    fn owns(&self, path: &str);

    /// Full paths of its ephemeral nodes, as far as answers told of them.
    fn owned(&self) -> Vec<String>;

    /// True once the session is certainly over, and its nodes with it: the servers acknowledged its close, or
    /// it was never opened.
    fn is_gone(&self) -> bool;

    /// The session's number; 0 until it was attached for the first time.
    fn id(&self) -> i64;

    /// Newest transaction that the session has seen.
    fn last_zxid(&self) -> i64;

    /// State of the link, as it changes.
    fn link(&self) -> watch::Receiver<LinkState>;

    /// Reason why this session cannot hold guards, if there is one: its timeout is not known well enough to
    /// derive a lease from it.
    fn refuses_guards(&self) -> Option<&'static str> {
        None
    }

    /// True when the watch events of a link are delivered in the order of their transactions, and a lost link
    /// is counted before anything of the next one is delivered.
    fn orders_events(&self) -> bool;

    /// Ends every waiting call and watch with [`SessionEnd::Closed`] and takes no requests of [`Lane::Call`].
    fn drain(&self);

    /// Means to end the session on a link of its own, once it was given up; `None` when it was never opened,
    /// or when its password is not known.
    fn closer(&self) -> Option<SessionCloser>;

    /// Gives the session up: nothing is sent on it any more. The servers may keep it for a while.
    fn abandon(&self);

    /// Ends the session on the server, after everything that was submitted before.
    fn close(&self);
}

/// End of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SessionEnd {
    /// A server said that it is gone. It may live on for a while all the same (decision 25).
    Expired,
    /// It was given up; the servers may still keep it for a while.
    Abandoned,
    /// The servers were restored from an older copy, in which it may or may not be.
    RolledBack,
    /// The servers refused our credentials; they may still keep it for a while.
    AuthFailed,
    /// We closed it.
    Closed,
}

impl SessionEnd {
    /// Label in metrics.
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
    /// Number of times that the link was lost.
    pub(crate) losses: u64,
}

/// Settings that a session is opened with.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) timeout: Duration,
    /// Newest transaction seen in any session of the client.
    pub(crate) last_zxid: i64,
    /// Most requests that may wait.
    pub(crate) queue_limit: usize,
    /// Largest frame taken from a server.
    pub(crate) inbound_limit: usize,
    /// Largest frame sent, `jute.maxbuffer` of the servers.
    pub(crate) outbound_limit: usize,
    /// Most bytes of the paths of the session's ephemeral nodes.
    pub(crate) ephemeral_limit: usize,
    /// Sent on every new link before anything else.
    pub(crate) credentials: Vec<Credentials>,
}

/// Limits that a request is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The queue's limit.
    Call,
    /// As `Call`. Its creates leave a part of the nodes that a session may own to calls.
    Claim,
    /// None: deletes of our own nodes must get through. Bounded by the number of live nodes.
    Cleanup,
    /// None, and ahead of all that waits: the check that keeps the lease and changes nothing. There is one at
    /// a time.
    Lease,
}

impl Lane {
    /// True for a request of a user's call, which ends once the client closes.
    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::Claim)
    }
}

/// Outcome of a request: exactly one of these.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The server answered.
    Reply(Reply),
    /// It never left the process: surely not applied.
    NotSent(Cause),
    /// It was written and no reply came: it may have been applied.
    Unknown(Cause),
}

impl Outcome {
    /// The server's answer to the request, or the cause that there is none. A server that has ended the
    /// session, or that takes no request now, gives no answer either.
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
    /// The own queue is full, or the server is too busy.
    QueueFull,
    /// The request, or the reply when it was sent: it is above the limit of this client. Or the request,
    /// which is not above that: then servers closed the link on it.
    TooLarge {
        size: usize,
        limit: usize,
    },
    /// The session would own ephemeral nodes with more bytes of paths than the servers surely can take.
    TooManyEphemerals {
        bytes: usize,
        limit: usize,
    },
}

/// A server's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) result: Result<Response, Code>,
    /// Newest transaction the server had applied, as far as the session is told.
    pub(crate) zxid: i64,
    /// The watch that the request left, if it asked for one and the server left it. On the heap, because few
    /// do.
    pub(crate) watch: Option<Box<Watch>>,
    /// Watches that a [`Request::SetWatches`] has set, in the order of its paths. Some may have fired before
    /// the reply.
    pub(crate) watches: Vec<Watch>,
}

impl Reply {
    /// The code by which the server refused the request; `None` if it applied it.
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
    /// Timer for the deadline, where the session does not keep it.
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
enum PendingState {
    /// On the heap, because it is rare that the outcome is known at once.
    Ready(Option<Box<Outcome>>),
    Waiting {
        outcome: oneshot::Receiver<Outcome>,
        id: u64,
        session: Arc<dyn Withdraw>,
    },
}

/// Access of requests and watches to their session: takes them back.
pub(crate) trait Withdraw: fmt::Debug + Send + Sync {
    /// True when the request had not been written and never will be.
    fn withdraw(&self, id: u64) -> bool;
    /// Forgets a subscriber of a watch.
    fn unregister(&self, id: u64, path: &str, kind: WatchKind);
}

impl Pending {
    pub(crate) fn ready(outcome: Outcome) -> Self {
        Self { state: PendingState::Ready(Some(Box::new(outcome))), timer: None }
    }

    /// A request whose outcome was taken.
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

    /// Waits for the outcome until `deadline`; then the request is withdrawn, or its outcome is unknown. In
    /// the latter case a reply may still come: this can be awaited again.
    pub(crate) async fn by(&mut self, deadline: Instant) -> Outcome {
        match tokio::time::timeout_at(deadline, &mut *self).await {
            Ok(outcome) => outcome,
            Err(_) => self.too_late(),
        }
    }

    fn too_late(&mut self) -> Outcome {
        if self.withdraw() { Outcome::NotSent(Cause::Deadline) } else { Outcome::Unknown(Cause::Deadline) }
    }

    /// Takes the request back. True when it surely was not and never will be sent.
    pub(crate) fn withdraw(&mut self) -> bool {
        let PendingState::Waiting { id, session, .. } = &self.state else { return false };
        let withdrawn = session.withdraw(*id);
        if withdrawn {
            self.state = PendingState::Ready(None);
        }
        withdrawn
    }

    /// Takes the request back, for a caller that stops waiting for its outcome. Returns whether it may be
    /// applied, because it was sent. `has_ended` says that the session has ended.
    pub(crate) async fn give_up(&mut self, has_ended: bool) -> bool {
        if self.withdraw() || !self.is_open() {
            return false;
        }
        // A session that ends delivers the outcome of each request, including those that it never sent.
        !has_ended || !matches!(self.await, Outcome::NotSent(_))
    }

    /// Takes the request back, for a caller that does not need its outcome any more. If it is too late for
    /// that, the request is returned: it tells the outcome.
    pub(crate) fn abandon(&mut self) -> Option<Self> {
        let comes = self.is_open() && !self.withdraw();
        comes.then(|| std::mem::replace(self, Self::taken()))
    }

    /// True when the outcome has not been taken yet.
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
                    // Only a runtime that shuts down drops the driver with requests in it.
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
