use super::kept;
use crate::config::Config;
use crate::keep::KeepFile;
use crate::log::Entry;
use crate::net::{Bind, Command, Entrance, Hub, LEADER, Listener, Serve, serve};
use crate::time::{Clock, timeouts_ms};
use crate::{Builder, EndCause, FollowerBuilder, KeepError, NodeInfo, SessionInfo, StartError, Transaction};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// An embedded server. It runs on the tokio runtime it was started on.
///
/// On drop: the listener and all links are closed, without waiting. [`stop`](Self::stop) waits.
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
    /// Starts a server with the defaults: on 127.0.0.1 and any free port.
    ///
    /// # Errors
    /// [`StartError`] when no port can be had.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Sets a server up.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Adds a follower of this server.
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

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address as clients want it: `127.0.0.1:port`.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// Closes the listener and all links, those of followers too, and waits until that is done. The tree is
    /// gone, or [kept](Builder::keep) in a file; where that fails, [`try_stop`](Self::try_stop) tells and
    /// this logs it.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the server stops in any case. The state may not be kept then.
    pub async fn stop(self) {
        if let Err(error) = self.try_stop().await {
            Entry::StateLost(error).write();
        }
    }

    /// Stops the server as [`stop`](Self::stop) does, and tells whether its state was kept.
    ///
    /// # Errors
    /// When the file of [`Builder::keep`] cannot be written. The server has stopped all the same.
    ///
    /// # Cancel safety
    /// As [`stop`](Self::stop).
    pub async fn try_stop(self) -> Result<(), KeepError> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.drained().await;
        kept::store(self.kept.clone(), &self.hub).await
    }

    /// Closes the listener and all links, and waits until that is done. The tree and the sessions stay; while
    /// the server does not listen no session expires, as in an ensemble without a leader. Followers close
    /// their links too, and take no new ones.
    ///
    /// # Errors
    /// [`StartError::Stopped`] when the server's runtime is gone.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the server stops listening in any case once the first poll returned.
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
    /// [`StartError`] when the address was taken by another in the meantime.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server may listen or not.
    pub async fn listen_again(&self) -> Result<(), StartError> {
        let (done, answer) = oneshot::channel();
        self.command(Command::ListenAgain(done)).await?;
        let bound = answer.await.map_err(|_| StartError::Stopped)?;
        bound.map_err(|source| StartError::Bind { address: self.address, source })
    }

    /// Stops listening and listens again: to clients a server that was restarted, with tree and sessions
    /// kept.
    ///
    /// # Errors
    /// As [`listen_again`](Self::listen_again).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server may listen or not.
    pub async fn restart(&self) -> Result<(), StartError> {
        self.stop_listening().await?;
        self.listen_again().await
    }

    /// Closes all links, those of followers too. Their sessions live on, and clients may come back at once.
    pub fn drop_links(&self) {
        self.hub.lock().cut_all();
    }

    /// Sets the shortest and the longest session timeout granted from now on to clients of this listener. A
    /// session has its timeout until it is attached again: then it lives by what it is granted now, as when
    /// it moves to a server with another configuration.
    pub fn set_session_timeouts(&self, min: Duration, max: Duration) {
        self.hub.lock().members.set_timeouts_ms(LEADER, timeouts_ms(min, max));
    }

    /// Answers clients of this listener as ZooKeeper 3.5 does from now on, or no longer: operations that came
    /// with 3.6 or later, among them `addWatch`, `setWatches2` and the multi of reads, are refused with
    /// [`UNIMPLEMENTED`](docent_proto::Code::UNIMPLEMENTED), and the link is closed after that answer. Links
    /// stay, with the watches that they have.
    pub fn set_3_5(&self, is_old: bool) {
        self.hub.lock().members.set_old(LEADER, is_old);
    }

    /// Ends a session now: its ephemeral nodes are deleted in one transaction, watches fire, its link is
    /// closed unless that is a follower's that is cut off. False when there is no such session.
    pub fn expire(&self, session: i64) -> bool {
        let now = self.hub.clock.now_ms();
        self.hub.lock().take_step(|state, effects| state.expire(session, EndCause::Forced, now, effects))
    }

    /// The ids of all sessions, in the order they were opened.
    pub fn sessions(&self) -> Vec<i64> {
        self.hub.lock().state.session_ids()
    }

    /// Number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions().len()
    }

    /// A session as the server knows it; `None` when there is none with that id.
    pub fn session(&self, id: i64) -> Option<SessionInfo> {
        self.hub.lock().state.session(id)
    }

    /// Number of open links, those of followers too.
    pub fn connection_count(&self) -> usize {
        self.hub.lock().links.count()
    }

    /// Number of watches, over all links but those of followers that are cut off.
    pub fn watch_count(&self) -> usize {
        self.hub.lock().state.watch_count()
    }

    /// The number of the last transaction.
    pub fn zxid(&self) -> i64 {
        self.hub.lock().state.zxid()
    }

    /// Sets the number that the next sequential child of `path` gets, as if so many children had been
    /// created: to come near the end of the counter, which is [`i32::MAX`]. False when there is no such node,
    /// or its counter is past that number.
    pub fn skip_numbers(&self, path: &str, next: i32) -> bool {
        self.hub.lock().state.skip_numbers(path, next)
    }

    /// The paths of all nodes in order, without the root and the nodes that a server has below `/zookeeper`
    /// from the start.
    pub fn nodes(&self) -> Vec<String> {
        self.hub.lock().state.paths()
    }

    /// Number of [`nodes`](Self::nodes), which is there without a look at each.
    pub fn node_count(&self) -> usize {
        self.hub.lock().state.made_count()
    }

    /// A node, read past all access control; `None` when it does not exist.
    pub fn node(&self, path: &str) -> Option<NodeInfo> {
        self.hub.lock().state.node_info(path)
    }

    /// All committed changes in order; empty unless the builder was told to keep a journal.
    pub fn journal(&self) -> Vec<Transaction> {
        self.journal_after(0)
    }

    /// The journal without its first `count` entries: those added since somebody had read so many. Its cost
    /// grows with the entries returned. Nothing is ever taken out of the journal or changed in it.
    pub fn journal_after(&self, count: usize) -> Vec<Transaction> {
        self.hub.lock().state.journal_after(count)
    }

    /// The server's clock, as in [`Transaction::time_ms`].
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

// The tree holds other people's data, and the sessions their passwords.
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
