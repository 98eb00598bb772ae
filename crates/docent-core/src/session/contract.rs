use super::{Credentials, Lane, Pending, SessionCloser};
use docent_proto::Request;
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A session as core uses it.
pub(crate) trait Session: fmt::Debug + Send + Sync + 'static {
    /// Enqueues `request`; it has its place in the order of calls when this returns.
    fn submit(&self, request: Request, lane: Lane) -> Pending;

    /// As [`submit`](Self::submit) with [`Lane::Call`], for a request that ends at `deadline` at the latest:
    /// withdrawn if it was not written by then, else with an unknown outcome, also when a reply comes later.
    /// Not for requests that set watches: a watch whose reply came too late would have no subscriber.
    fn submit_until(&self, request: Request, deadline: Instant) -> Pending {
        self.submit(request, Lane::Call).until(deadline)
    }

    /// As [`submit`](Self::submit), but with `losses` lost links only before another one is lost: else it
    /// ends with [`Cause::LinkLost`](super::Cause::LinkLost) and is not sent. What was known of a node may
    /// not be so any more after that.
    fn submit_on(&self, request: Request, lane: Lane, losses: u64) -> Pending;

    /// Takes note of an ephemeral node of the session that was made although no answer said so.
    fn owns(&self, path: &str);

    /// The session's number; 0 until it was attached for the first time.
    fn id(&self) -> i64;

    /// Newest transaction that the session has seen.
    fn last_zxid(&self) -> i64;

    /// State of the link, as it changes.
    fn link(&self) -> watch::Receiver<LinkState>;

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
    /// The server said that it is gone.
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
