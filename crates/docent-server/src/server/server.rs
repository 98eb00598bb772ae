use super::kept;
use crate::config::Config;
use crate::keep::KeepFile;
use crate::log::Entry;
use crate::net::{Bind, Command, Entrance, Hub, LEADER, Listener, Serve, serve};
use crate::time::{Clock, timeouts_ms};
use crate::{
    Builder, Dialect, EndCause, FollowerBuilder, KeepError, NodeInfo, SessionInfo, StartError, Transaction,
};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// An embedded server. It runs on the tokio runtime that it was started on.
///
/// # On drop
/// The listener and all links are closed, without waiting. [`stop`](Self::stop) waits.
#[must_use = "the server stops when it is dropped"]
pub struct Server {
    pub(crate) hub: Arc<Hub>,
    pub(crate) config: Config,
    commands: mpsc::Sender<Command>,
    pub(crate) tasks: TaskTracker,
    pub(crate) links: TaskTracker,
    pub(crate) stop: CancellationToken,
    address: SocketAddr,
    connect_string: String,
    kept: Option<Arc<KeepFile>>,
}

impl Server {
    /// Starts a server with default settings, on 127.0.0.1 and any free port.
    ///
    /// # Errors
    /// [`StartError`] if no port is available.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Returns a builder for a server.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns a builder for a follower of this server.
    pub fn follower(&self) -> FollowerBuilder<'_> {
        FollowerBuilder::new(self)
    }

    pub(crate) async fn launch<B: Bind>(
        config: Config,
        bind: B,
        address: SocketAddr,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Bind { address, source };
        let listener = bind.bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let clock = config.clock.clone().unwrap_or_else(Clock::of_tokio);
        let (state, kept) = kept::load(config.clone(), &clock).await?;
        let hub = Arc::new(Hub::new(&config, clock, state));
        hub.lock().members.set_port(LEADER, address.port());
        let (commands, receiver) = mpsc::channel(1);
        let (tasks, links, stop) = (TaskTracker::new(), TaskTracker::new(), CancellationToken::new());
        let task = Serve {
            bind,
            listener: Some(listener),
            address,
            entrance: Entrance {
                hub: Arc::clone(&hub),
                member: LEADER,
                links: links.clone(),
                handshake: config.limits.handshake,
            },
            config: config.clone(),
            stop: stop.clone(),
        };
        tasks.spawn(serve(task, receiver));
        let connect_string = address.to_string();
        Ok(Self { hub, config, commands, tasks, links, stop, address, connect_string, kept })
    }

    /// Returns the address that the server listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as clients need it: `127.0.0.1:port`.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// Closes the listener and all links, including those of followers, and waits until that is done. The
    /// state is discarded, or saved in the file of [`Builder::keep`]. If saving fails, this method logs the
    /// error; [`try_stop`](Self::try_stop) returns it.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server stops in any case, but its state may not be saved.
    pub async fn stop(self) {
        if let Err(error) = self.try_stop().await {
            Entry::StateLost(error).write();
        }
    }

    /// Stops the server as [`stop`](Self::stop) does, and returns whether its state was saved.
    ///
    /// # Errors
    /// If the file of [`Builder::keep`] cannot be written. The server has stopped nevertheless.
    ///
    /// # Cancel safety
    /// See [`stop`](Self::stop).
    pub async fn try_stop(self) -> Result<(), KeepError> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.drained().await;
        kept::store(self.kept.clone(), &self.hub).await
    }

    /// Closes the listener and all links, and waits until that is done. The tree and the sessions are kept.
    /// While the server does not listen, no session expires, as in an ensemble without a leader. Followers
    /// also close their links and accept no new ones.
    ///
    /// # Errors
    /// [`StartError::Stopped`] if the server's runtime has shut down.
    ///
    /// # Cancel safety
    /// This method is cancel safe. Once it has been polled, the server stops listening in any case.
    pub async fn stop_listening(&self) -> Result<(), StartError> {
        let (done, answer) = oneshot::channel();
        self.command(Command::StopListening(done)).await?;
        answer.await.map_err(|_| StartError::Stopped)?;
        self.drained().await;
        Ok(())
    }

    /// Listens on the same address again. Each session has its full timeout from now on.
    ///
    /// # Errors
    /// [`StartError`] if another process has taken the address in the meantime.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server may or may not listen.
    pub async fn listen_again(&self) -> Result<(), StartError> {
        let (done, answer) = oneshot::channel();
        self.command(Command::ListenAgain(done)).await?;
        let bound = answer.await.map_err(|_| StartError::Stopped)?;
        bound.map_err(|source| StartError::Bind { address: self.address, source })
    }

    /// Stops listening and listens again. To clients, the server has restarted with its tree and sessions
    /// intact.
    ///
    /// # Errors
    /// See [`listen_again`](Self::listen_again).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server may or may not listen.
    pub async fn restart(&self) -> Result<(), StartError> {
        self.stop_listening().await?;
        self.listen_again().await
    }

    /// Closes all links, including those of followers. Their sessions continue, and clients may reconnect
    /// immediately.
    pub fn drop_links(&self) {
        self.hub.lock().cut_all();
    }

    /// Sets the minimum and maximum session timeout for clients of this listener from now on. An existing
    /// session keeps its timeout until it is attached again, and then gets a new one, as when it moves to a
    /// server with a different configuration.
    pub fn set_session_timeouts(&self, min: Duration, max: Duration) {
        self.hub.lock().members.set_timeouts_ms(LEADER, timeouts_ms(min, max));
    }

    /// Sets the dialect that clients of this listener are answered in from now on, as after an upgrade.
    /// Existing links keep their watches.
    pub fn set_dialect(&self, dialect: Dialect) {
        self.hub.lock().members.set_dialect(LEADER, dialect);
    }

    /// Returns the dialect that clients of this listener are answered in.
    pub fn dialect(&self) -> Dialect {
        self.hub.lock().members.dialect(LEADER)
    }

    /// Expires a session immediately: its ephemeral nodes are deleted in one transaction, watches fire, and
    /// its link is closed, unless that is a link to a follower that is cut off. Returns `false` if there is
    /// no such session.
    pub fn expire(&self, session: i64) -> bool {
        let now = self.hub.clock.now_ms();
        self.hub.lock().take_step(|state, effects| state.expire(session, EndCause::Forced, now, effects))
    }

    /// Returns the ids of all sessions, in the order in which they were opened.
    pub fn sessions(&self) -> Vec<i64> {
        self.hub.lock().state.session_ids()
    }

    /// Returns the number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions().len()
    }

    /// Returns the state of a session; `None` if there is no session with that id.
    pub fn session(&self, id: i64) -> Option<SessionInfo> {
        self.hub.lock().state.session(id)
    }

    /// Returns the number of open links, including those of followers.
    pub fn connection_count(&self) -> usize {
        self.hub.lock().links.count()
    }

    /// Returns the number of watches on all links, except those to followers that are cut off.
    pub fn watch_count(&self) -> usize {
        self.hub.lock().state.watch_count()
    }

    /// Returns the number of the last transaction.
    pub fn zxid(&self) -> i64 {
        self.hub.lock().state.zxid()
    }

    /// Sets the number of the next sequential child of `path`, as if that many children had been created. Use
    /// it to test the end of the counter, which is [`i32::MAX`]. Returns `false` if there is no such node, or
    /// its counter is already past that number.
    pub fn skip_numbers(&self, path: &str, next: i32) -> bool {
        self.hub.lock().state.skip_numbers(path, next)
    }

    /// Returns the paths of all nodes in order, without the root and the nodes that every server has below
    /// `/zookeeper`.
    pub fn nodes(&self) -> Vec<String> {
        self.hub.lock().state.paths()
    }

    /// Returns the number of [`nodes`](Self::nodes), without visiting each of them.
    pub fn node_count(&self) -> usize {
        self.hub.lock().state.created_count()
    }

    /// Returns a node, bypassing access control; `None` if it does not exist.
    pub fn node(&self, path: &str) -> Option<NodeInfo> {
        self.hub.lock().state.node_info(path)
    }

    /// Returns all committed changes in order; empty unless the builder enabled the
    /// [journal](Builder::journal).
    pub fn journal(&self) -> Vec<Transaction> {
        self.journal_after(0)
    }

    /// Returns the journal without its first `count` entries, for a reader that has already seen those. The
    /// cost is proportional to the number of returned entries. Entries are never removed or changed.
    pub fn journal_after(&self, count: usize) -> Vec<Transaction> {
        self.hub.lock().state.journal_after(count)
    }

    /// Returns the time of the server's clock in milliseconds, as in [`Transaction::time_ms`].
    pub fn time_ms(&self) -> i64 {
        self.hub.clock.now_ms()
    }

    async fn command(&self, command: Command) -> Result<(), StartError> {
        self.commands.send(command).await.map_err(|_| StartError::Stopped)
    }

    /// Waits until the tasks of all links that were cut have ended.
    async fn drained(&self) {
        self.links.close();
        self.links.wait().await;
        self.links.reopen();
    }
}

// The tree contains user data, and the sessions contain passwords, so only the address is printed.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        self.hub.lock().cut_all();
    }
}
