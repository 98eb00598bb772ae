#![expect(
    clippy::manual_async_fn,
    reason = "an `async fn` keeps its arguments twice, and with many calls in flight their size counts"
)]

use super::clock_check::{self, ClockCheck};
use super::proved_identity::{self, ProvedIdentity};
use super::{ClientBuilder, Health, StateWatcher};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::operation::{Attempts, ClientKey, Idempotency, Make, Shared};
use crate::session::connect_string::ConnectString;
use crate::telemetry;
use crate::telemetry::Started;
use crate::time::deadline;
use docent_proto::{Code, Response};
use futures_util::FutureExt;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// A client of a ZooKeeper ensemble: one session at a time, healed by itself.
///
/// Cheap to clone; all clones share the session. Two tasks run for each client, whatever the number of
/// clones: one for the session and one for cleanups.
///
/// # On drop
/// When the last clone and everything built on it are dropped, the session is closed in the background. Use
/// [`close`](Self::close) to wait for that.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
    operation_timeout: Duration,
    /// Number of the only generation in which it may act; `None` for any.
    bound: Option<u64>,
}

/// Shared by all clones: its drop is that of the last one.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

impl Client {
    /// Connects with default settings to `host:port,host:port/chroot` and waits for the first session.
    ///
    /// # Errors
    /// `InvalidInput` for a connect string that breaks a rule, `Timeout` when no server answered within the
    /// operation timeout (15 s); its source says why.
    ///
    /// # Cancel safety
    /// This method is cancel safe: nothing is left behind.
    pub async fn connect(connect_string: impl AsRef<str>) -> Result<Self, Error> {
        // On the heap, because the settings are a part of it.
        Box::pin(Self::builder(connect_string).connect()).await
    }

    /// Prepares a client with settings of its own.
    pub fn builder(connect_string: impl AsRef<str>) -> ClientBuilder {
        ClientBuilder::new(connect_string.as_ref())
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        let operation_timeout = shared.config.operation_timeout;
        Self { handle: Arc::new(Handle { shared }), operation_timeout, bound: None }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    pub(crate) fn operation_timeout(&self) -> Duration {
        self.operation_timeout
    }

    /// A clone whose operations take at most `timeout` each, with waiting for a link and retries.
    #[must_use]
    pub fn with_operation_timeout(&self, timeout: Duration) -> Self {
        Self { operation_timeout: timeout, ..self.clone() }
    }

    /// Key of what clones share that have the same timeout and, if they are bound to one, the same session.
    pub(crate) fn key(&self, full: String) -> ClientKey {
        ClientKey { operation_timeout: self.operation_timeout, bound: self.bound, full }
    }

    /// A clone whose operations happen in the present session or not at all: once that has ended they fail
    /// with `SessionChanged`.
    #[must_use]
    pub fn in_this_session(&self) -> Self {
        Self { bound: Some(self.shared().generation().number), ..self.clone() }
    }

    /// Observes the connection state.
    pub fn state(&self) -> StateWatcher {
        StateWatcher::new(self.shared().connection.subscribe())
    }

    /// The number of the present session at the servers; `None` before the first was opened.
    pub fn session_id(&self) -> Option<i64> {
        Some(self.shared().generation().session.id()).filter(|id| *id != 0)
    }

    /// The timeout of the present session as the servers granted it; `None` before the first link.
    pub fn session_timeout(&self) -> Option<Duration> {
        Some(self.shared().generation().lease.timeout()).filter(|timeout| !timeout.is_zero())
    }

    /// The part of the session timeout that the leases of guards leave unused, as the servers granted it;
    /// `None` before the first link. A lease lasts for the rest of the timeout.
    pub fn lease_margin(&self) -> Option<Duration> {
        let generation = self.shared().generation();
        Some(&generation.lease).filter(|lease| !lease.timeout().is_zero()).map(|lease| lease.margin())
    }

    /// Identity that recipes write into nodes when they are given no data: the one that the client was built
    /// with, else that of the process and its label, as [`ClientIdentity`](crate::ClientIdentity) shows it.
    pub fn identity(&self) -> &str {
        &self.shared().identity
    }

    /// Label of this client in logs and metrics: the one that it was built with, else its number in the
    /// process.
    pub fn label(&self) -> &str {
        &self.shared().label
    }

    /// Data that Curator's recipes write by default, for nodes in which others read an address: the identity
    /// that the client was built with, else its local address.
    pub fn default_data(&self) -> &str {
        &self.shared().default_data
    }

    /// Largest request in bytes that is sent, as the client was built with.
    pub fn max_request(&self) -> usize {
        self.shared().config.max_request
    }

    /// The client's present health, without I/O.
    pub fn health(&self) -> Health {
        Health::of(self.shared())
    }

    /// Compares the pace of the client's clock with that of the servers for `period`: for operators who want
    /// to know whether leases can be trusted on a machine. Pause or move the virtual machine meanwhile, and
    /// see whether the clock went on.
    ///
    /// It writes a node of the session's own at the beginning and at the end, whose times the leader of the
    /// servers sets.
    ///
    /// # Assumptions
    /// The servers' time of day is not set during the check, and they have the same leader, or leaders with
    /// the same time. It finds what happens during the check, and no less than a round trip: a clock that was
    /// all right may be stopped later.
    ///
    /// # Errors
    /// `Timeout`, `Closed`; `NoAuth` if the client may create nodes neither at the root of its namespace nor
    /// where it did so before.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn check_clock(&self, period: Duration) -> Result<ClockCheck, Error> {
        clock_check::check_clock(self, period).await
    }

    /// Asks the server of the link which identities it knows this client by, to compare access control lists
    /// with: its address, and what its credentials proved. A wrong password is no error of servers, and shows
    /// as the user that it is of.
    ///
    /// A server before ZooKeeper 3.7 does not know the question, and closes the link after refusing it: the
    /// session goes on with another one, and other operations that are on their way end as after any lost
    /// link. Ask from a client of its own where that matters.
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

    /// Replaces the list of servers by those of `connect_string`, whose chroot must be empty or that of this
    /// client. The link to a server that is not among them is given up; the session moves to another.
    ///
    /// # Errors
    /// `InvalidInput` when the connect string breaks a rule.
    pub fn update_servers(&self, connect_string: &str) -> Result<(), Error> {
        let ConnectString { servers, chroot } = ConnectString::parse(connect_string)?;
        if !chroot.is_empty() && !self.shared().namespace.begins_with(&chroot) {
            let detail = format!("chroot {chroot:?} must be the one that the client was built with");
            return Err(Error::invalid_input("update_servers", detail));
        }
        self.shared().ensemble.servers.set(servers);
        Ok(())
    }

    /// Closes the client at once, without asking those who hold something: see [`shutdown`](Self::shutdown)
    /// for an orderly end. Every pending future ends with `Closed`, pending deletes are carried out, guards
    /// are lost, the session is ended on the server and both tasks end. Calling it again waits for the same
    /// end.
    ///
    /// Takes at most the operation timeout. If the link breaks before the servers confirm the end of the
    /// session, the session is closed again at the next server; earlier sessions whose end is not certain are
    /// waited for, too. A session that could not be ended in time ends by itself.
    ///
    /// Lost guards have time for their work to stop: the session is ended once they are dropped, or after a
    /// margin of the lease, at most a quarter of the operation timeout. So drop guards that you hold before
    /// this call, or it takes that long.
    ///
    /// # Cancel safety
    /// This method is cancel safe: closing goes on.
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
        request: &Make<'_>,
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
        request: &Make<'_>,
    ) -> impl Future<Output = Result<Response, Error>> + Send {
        async move {
            let (result, _) = self.call(operation, path, request, Idempotency::Once).await?;
            result.map_err(|code| Error::from_code(code, operation).at(path))
        }
    }

    /// Sends a `request` until a server answers, as far as `idempotency` and the retry policy allow. Returns
    /// the answer and the generation it is from. `path` is named in errors.
    pub(crate) fn call(
        &self,
        operation: &'static str,
        path: &str,
        request: &Make<'_>,
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

    /// The same future, timed, and in a span where somebody listens. `path` is what the `request` is about.
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

    /// The attempts of an operation on `path`, which end with the operation timeout from now.
    pub(crate) fn attempts<'a>(
        &'a self,
        operation: &'static str,
        path: &'a str,
        idempotency: Idempotency,
    ) -> Attempts<'a> {
        Attempts::new(self.shared(), operation, path, idempotency, self.deadline()).bound_to(self.bound)
    }

    /// The path of a node as the servers know it.
    pub(super) fn full(&self, path: &str) -> String {
        self.shared().namespace.join(path)
    }
}

/// In one line: its servers with chroot and namespace, its identity, and its state. Handles of recipes print
/// it beside their path.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        let servers: Vec<_> = shared.ensemble.servers.get().iter().map(ToString::to_string).collect();
        let servers = format!("{}{}", servers.join(","), shared.namespace.join(""));
        write!(f, "Client({servers:?}, {:?}, {})", self.identity(), self.state().current())
    }
}
