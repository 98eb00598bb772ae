#![expect(
    clippy::manual_async_fn,
    reason = "an `async fn` keeps its arguments twice, and with many calls in flight their size counts"
)]

use super::clock_check::{self, ClockCheck};
use super::proved_identity::{self, ProvedIdentity};
use super::{ClientBuilder, Health, ParentKind, StateWatcher};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::operation::{Attempts, ClientKey, Idempotency, RequestFn, Shared};
use crate::session::connect_string::{ConnectString, ServerAddress};
use crate::telemetry::{self, Started};
use crate::time::deadline;
use docent_proto::{Code, Response};
use futures_util::FutureExt;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// A client of a ZooKeeper ensemble: one session at a time, re-established automatically.
///
/// Cheap to clone; all clones share the session. Each client runs two tasks, regardless of the number of
/// clones: one for the session and one for cleanups.
///
/// If the link is lost after a request was sent, the client repeats the request on the next link if that is
/// safe: a read, or a write of which at most one attempt can be applied. Otherwise the call fails with
/// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown).
///
/// # On drop
/// When the last clone is dropped, the client closes in the background as with [`close`](Self::close), if its
/// runtime keeps running. Otherwise the session expires at the servers. Locks, other recipes, guards and kept
/// nodes contain clones; caches, streams, subscriptions and views do not. Use [`close`](Self::close) to end
/// the client earlier, and to wait until the session is closed.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
    operation_timeout: Duration,
    /// Number of the only generation in which this clone may act; `None` for any.
    bound: Option<u64>,
    /// Kind of node that missing parents are created as.
    parents: ParentKind,
}

/// Shared by all clones; dropped with the last one.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

impl Client {
    /// Connects with default settings to `host:port,host:port/chroot` and waits for the first session. See
    /// [`builder`](Self::builder) for the format of the connect string.
    ///
    /// # Errors
    /// `InvalidInput` if the connect string breaks a rule; `Timeout` if no server answered within the
    /// operation timeout (15 s). The text names each server with the reason.
    ///
    /// # Cancel safety
    /// This method is cancel safe. Nothing is left behind.
    pub async fn connect(connect_string: impl AsRef<str>) -> Result<Self, Error> {
        // On the heap, because the future contains the settings.
        Box::pin(Self::builder(connect_string).connect()).await
    }

    /// Returns a builder for a client with custom settings.
    ///
    /// The connect string names the servers, separated by commas, and optionally a chroot after the last
    /// server: `zk1:2181,zk2:2181,zk3:2181/shop`.
    ///
    /// - A server is a host name or an IP address, with a port from 1 to 65535. Without a port it is 2181.
    /// - An IPv6 address is in brackets: `[::1]:2181`.
    /// - The chroot is the path of a node. All paths of the client are below it.
    /// - There is no scheme, such as `http://`, and there are no credentials, which
    ///   [`auth_digest`](ClientBuilder::auth_digest) takes.
    ///
    /// The string is checked by [`connect`](ClientBuilder::connect) and [`build`](ClientBuilder::build).
    pub fn builder(connect_string: impl AsRef<str>) -> ClientBuilder {
        ClientBuilder::new(connect_string.as_ref())
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        let (operation_timeout, parents) = (shared.config.operation_timeout, shared.config.parents);
        Self { handle: Arc::new(Handle { shared }), operation_timeout, bound: None, parents }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    pub(crate) fn operation_timeout(&self) -> Duration {
        self.operation_timeout
    }

    /// Returns a clone whose operations take at most `timeout` each, including retries and the wait for a
    /// link.
    #[must_use]
    pub fn with_operation_timeout(&self, timeout: Duration) -> Self {
        Self { operation_timeout: timeout, ..self.clone() }
    }

    /// Returns the kind of node that missing parents are created as, of those that the servers have.
    pub(crate) fn parents(&self) -> ParentKind {
        self.shared().parents_as(self.parents)
    }

    /// Returns a clone that creates missing parents as `kind`, in place of the kind set by
    /// [`ClientBuilder::parents`]. Recipes on this clone create their nodes' parents as `kind`, except for
    /// the folder of a waiting line, such as a lock's.
    #[must_use]
    pub fn with_parents(&self, kind: ParentKind) -> Self {
        Self { parents: kind, ..self.clone() }
    }

    /// Returns the key of values shared by clones with the same timeout and, if bound to one, the same
    /// session.
    pub(crate) fn key(&self, full: String) -> ClientKey {
        ClientKey { operation_timeout: self.operation_timeout, bound: self.bound, full }
    }

    /// Returns a clone whose operations run in the current session or not at all. Once that session has
    /// ended, they fail with `SessionChanged`.
    #[must_use]
    pub fn in_this_session(&self) -> Self {
        Self { bound: Some(self.shared().generation().number), ..self.clone() }
    }

    /// Returns a watcher of the connection state.
    pub fn state(&self) -> StateWatcher {
        StateWatcher::new(self.shared().connection.subscribe())
    }

    /// Returns the id of the current session at the servers, or `None` before the first session was opened.
    pub fn session_id(&self) -> Option<i64> {
        Some(self.shared().generation().session.id()).filter(|id| *id != 0)
    }

    /// Returns the timeout of the current session as granted by the servers, or `None` before the first link.
    pub fn session_timeout(&self) -> Option<Duration> {
        Some(self.shared().generation().lease.timeout()).filter(|timeout| !timeout.is_zero())
    }

    /// Returns the part of the granted session timeout that the leases of guards leave unused, or `None`
    /// before the first link. A lease lasts for the rest of the timeout.
    pub fn lease_margin(&self) -> Option<Duration> {
        let generation = self.shared().generation();
        Some(&generation.lease).filter(|lease| !lease.timeout().is_zero()).map(|lease| lease.margin())
    }

    /// Returns the identity that recipes write into nodes if they are given no data: the one set in the
    /// builder, otherwise that of the process and its label, in the format of
    /// [`ClientIdentity`](crate::ClientIdentity).
    pub fn identity(&self) -> &str {
        &self.shared().identity
    }

    /// Returns the label of this client in logs and metrics: the one set in the builder, otherwise its number
    /// in the process.
    pub fn label(&self) -> &str {
        &self.shared().label
    }

    /// Returns the default data for nodes from which other clients read an address, the same as Curator's:
    /// the identity set in the builder, otherwise the client's local address.
    pub fn default_data(&self) -> &str {
        &self.shared().default_data
    }

    /// Returns the largest request in bytes that the client sends, as set in the builder.
    pub fn max_request(&self) -> usize {
        self.shared().config.max_request
    }

    /// Returns the client's current health, without I/O.
    pub fn health(&self) -> Health {
        Health::of(self.shared())
    }

    /// Compares the rate of the client's clock with that of the servers for `period`, to find out whether
    /// leases can be trusted on a machine. Pause or move the virtual machine during the check to see whether
    /// the clock keeps running.
    ///
    /// The check writes a node of the session at the beginning and at the end; the leader of the servers sets
    /// the times of these writes.
    ///
    /// # Assumptions
    /// The servers' time of day is not adjusted during the check, and they keep the same leader, or leaders
    /// with the same time. The check finds only what happens while it runs, and only differences larger than
    /// a round trip: a clock that is fine now may stop later.
    ///
    /// # Errors
    /// `Timeout`, `Closed`; `NoAuth` if the client may create nodes neither at the root of its namespace nor
    /// where it has created its own nodes before.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn check_clock(&self, period: Duration) -> Result<ClockCheck, Error> {
        clock_check::check_clock(self, period).await
    }

    /// Returns the identities that the connected server knows for this client, for comparison with access
    /// control lists: the client's address, and the identities that its credentials proved. Servers accept a
    /// wrong password without an error; the result then still shows the user name.
    ///
    /// A server before ZooKeeper 3.7 does not support this request, and closes the link after refusing it.
    /// The session continues with another link, and operations in flight end as after any lost link. If that
    /// matters, use a separate client for this call.
    ///
    /// # Errors
    /// `Unsupported` from servers before ZooKeeper 3.7, and in sessions of the crate `zookeeper-client`;
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn who_am_i(&self) -> Result<Vec<ProvedIdentity>, Error> {
        proved_identity::who_am_i(self).await
    }

    /// Returns the servers that the client connects to, in the order of the connect string.
    pub fn servers(&self) -> Vec<ServerAddress> {
        self.shared().ensemble.servers.borrow().clone()
    }

    /// Replaces the list of servers with that of `connect_string`, whose chroot must be empty or that of this
    /// client. If the connected server is not in the new list, the client drops the link and the session
    /// moves to another server.
    ///
    /// # Errors
    /// `InvalidInput` if the connect string breaks a rule.
    pub fn update_servers(&self, connect_string: &str) -> Result<(), Error> {
        let ConnectString { servers, chroot } = ConnectString::parse(connect_string)?;
        if !chroot.is_empty() && !self.shared().namespace.begins_with(&chroot) {
            let detail = format!("chroot {chroot:?} must match the chroot of this client");
            return Err(Error::invalid_input("update_servers", detail));
        }
        self.shared().ensemble.servers.send_replace(servers);
        Ok(())
    }

    /// Closes the client immediately, without asking the holders of guards; see [`shutdown`](Self::shutdown)
    /// for an orderly end. Every pending future ends with `Closed`, pending deletes are sent, guards are
    /// lost, the session is closed at the servers and both tasks end. Further calls wait for the same end.
    ///
    /// Takes at most the operation timeout. If the link breaks before the servers confirm the close, the
    /// session is closed again at the next server. The call also waits for earlier sessions whose end is not
    /// certain. In an outage, the call waits for the servers only until the client has had no connection for
    /// two seconds. A session that could not be closed in time expires at the servers.
    ///
    /// The work of lost guards gets time to stop: the session is closed as soon as these guards are dropped.
    /// This wait takes at most the lease margin or a quarter of the operation timeout, whichever is shorter.
    /// Drop your guards before this call to avoid that wait.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The client keeps closing in the background.
    pub async fn close(&self) {
        self.shared().closing.cancel();
        if !planted!(CloseNotAwaited) {
            self.shared().tasks.wait().await;
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        deadline(self.operation_timeout * if planted!(DeadlineDoubled) { 2 } else { 1 })
    }

    pub(super) fn read(
        &self,
        operation: &'static str,
        path: &str,
        request: &RequestFn<'_>,
    ) -> impl Future<Output = Result<Response, Error>> + Send {
        async move {
            let (result, _) = self.call(operation, path, request, Idempotency::Idempotent).await?;
            result.map_err(|code| Error::from_code(code, operation).at(path))
        }
    }

    pub(crate) fn write(
        &self,
        operation: &'static str,
        path: &str,
        request: &RequestFn<'_>,
    ) -> impl Future<Output = Result<Response, Error>> + Send {
        async move {
            let (result, _) = self.call(operation, path, request, Idempotency::Once).await?;
            result.map_err(|code| Error::from_code(code, operation).at(path))
        }
    }

    /// Sends a `request` until a server answers, as far as `idempotency` and the retry policy allow. Returns
    /// the answer and the generation that received it. Errors name `path`.
    pub(crate) fn call(
        &self,
        operation: &'static str,
        path: &str,
        request: &RequestFn<'_>,
        idempotency: Idempotency,
    ) -> impl Future<Output = Result<(Result<Response, Code>, Arc<SessionGeneration>), Error>> + Send {
        let call = async move {
            let mut attempts = self.attempts(operation, path, idempotency);
            loop {
                let generation = attempts.generation().await?;
                if let Some(result) = attempts.send(&generation, request).await? {
                    return Ok((result, generation));
                }
            }
        };
        self.observed(operation, path, call)
    }

    /// Wraps a future to measure its duration and, if a subscriber is interested, to run in a span. `path` is
    /// the node that the operation concerns.
    pub(crate) fn observed<T, F: Future<Output = Result<T, Error>> + Send>(
        &self,
        operation: &'static str,
        path: &str,
        request: F,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let (instruments, started) = (&self.shared().instruments, Started::now());
        let span = telemetry::request_span(instruments.client(), operation, path);
        let ended = move |result: &Result<T, Error>| {
            instruments.operation(operation, started, result);
            telemetry::note_outcome(result);
        };
        request.inspect(ended).instrument(span)
    }

    /// Returns the attempts of an operation on `path`, which end after the operation timeout.
    pub(crate) fn attempts<'a>(
        &'a self,
        operation: &'static str,
        path: &'a str,
        idempotency: Idempotency,
    ) -> Attempts<'a> {
        Attempts::new(self.shared(), operation, path, idempotency, self.deadline()).bound_to(self.bound)
    }

    /// Returns the full path of a node, as the servers know it.
    pub(super) fn full(&self, path: &str) -> String {
        self.shared().namespace.join(path)
    }
}

/// Prints one line: the servers with chroot and namespace, the identity, and the state. Handles of recipes
/// print this line beside their path.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        let servers: Vec<_> = shared.ensemble.servers.borrow().iter().map(ToString::to_string).collect();
        let servers = format!("{}{}", servers.join(","), shared.namespace.join(""));
        write!(f, "Client({servers:?}, {:?}, {})", self.identity(), self.state().current())
    }
}
