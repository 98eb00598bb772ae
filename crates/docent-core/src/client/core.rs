use crate::cleanup::Cleanup;
use crate::client::config::Config;
use crate::client::generation::SessionGeneration;
use crate::client::state::{ConnectionState, ConnectionStatus};
use crate::error::{Error, ErrorKind};
use crate::kept::KeptTable;
use crate::node::namespace::Namespace;
use crate::session::connect_string::ServerAddress;
use crate::session::lease::Lease;
use crate::session::link::dialer::{Dialer, Ensemble, Start};
#[cfg(feature = "zookeeper-client")]
use crate::session::zookeeper_client::ZookeeperClientSession;
use crate::session::{Session, SessionEnd, SessionSettings, WireSession};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// State that the handles of one client share with its two tasks.
pub(crate) struct Core {
    /// Tells clients of one process apart.
    pub(crate) id: u64,
    pub(crate) config: Config,
    pub(crate) namespace: Namespace,
    /// Written into nodes when the caller gives no data.
    pub(crate) identity: String,
    pub(crate) ensemble: Ensemble,
    pub(crate) generations: watch::Sender<Arc<SessionGeneration>>,
    pub(crate) connection: watch::Sender<ConnectionStatus>,
    pub(crate) cleanup: Cleanup,
    pub(crate) kept: KeptTable,
    /// Sessions of earlier generations, with the paths of their witnesses.
    past_sessions: Mutex<Vec<(i64, String)>>,
    /// Set once the servers, older than 3.6, refused to read many nodes in one request.
    pub(crate) no_multi_read: AtomicBool,
    /// Runtime of the client's tasks.
    pub(crate) runtime: Handle,
    /// Cancelled when the client is to close.
    pub(crate) closing: CancellationToken,
    /// Cancelled when nothing is left to do.
    pub(crate) finished: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Runs a session until it ends.
pub(crate) type SessionTask = BoxFuture<'static, SessionEnd>;

impl Core {
    pub(crate) fn new(
        config: Config,
        namespace: Namespace,
        identity: String,
        servers: Vec<ServerAddress>,
        cleanup: Cleanup,
        runtime: Handle,
    ) -> (Arc<Self>, SessionTask) {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let ensemble = Ensemble::new(Arc::clone(&config.transport), servers);
        let (generation, task) = open(&config, &ensemble, &cleanup, 1, 0, Start::AtOnce);
        let connection = ConnectionStatus {
            state: ConnectionState::Connecting,
            generation: 1,
            suspensions: 0,
            rollbacks: 0,
        };
        let core = Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            config,
            namespace,
            identity,
            ensemble,
            generations: watch::Sender::new(Arc::new(generation)),
            connection: watch::Sender::new(connection),
            cleanup,
            kept: KeptTable::default(),
            past_sessions: Mutex::default(),
            no_multi_read: AtomicBool::new(false),
            runtime,
            closing: CancellationToken::new(),
            finished: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        (Arc::new(core), task)
    }

    /// Opens the session after the one of `generation`, which ended by `end`.
    pub(crate) fn open_next(
        &self,
        generation: &SessionGeneration,
        end: SessionEnd,
    ) -> (Arc<SessionGeneration>, SessionTask) {
        // Servers that were restored refuse a client that has seen newer transactions, so a fresh start has
        // seen none.
        let last_zxid = if end == SessionEnd::RolledBack { 0 } else { generation.session.last_zxid() };
        let number = generation.number + 1;
        self.remember(generation.session.id(), generation.witness.path(&self.namespace));
        let (generation, task) =
            open(&self.config, &self.ensemble, &self.cleanup, number, last_zxid, Start::Jittered);
        let generation = Arc::new(generation);
        self.generations.send_replace(Arc::clone(&generation));
        (generation, task)
    }

    /// Reason why a client that has stopped refuses operations.
    pub(crate) fn closed(&self) -> ErrorKind {
        match self.connection.borrow().state {
            ConnectionState::RolledBack => ErrorKind::EnsembleRolledBack,
            _ => ErrorKind::Closed,
        }
    }

    /// The access control list of a node to be created at the full path `full`, which is without the number
    /// of a sequence.
    pub(crate) fn acl(&self, full: &str) -> Arc<[docent_proto::Acl]> {
        self.config.acl.of(&self.namespace, full)
    }

    fn past_sessions(&self) -> MutexGuard<'_, Vec<(i64, String)>> {
        self.past_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a session that is over, with its witness. The servers keep a session for a timeout at most,
    /// so that the last few are enough.
    fn remember(&self, session_id: i64, witness: String) {
        const ENOUGH: usize = 64;
        // A session that was never opened has no number, and neither has the owner of a persistent node.
        if session_id == 0 {
            return;
        }
        let mut past = self.past_sessions();
        if past.len() == ENOUGH {
            past.remove(0);
        }
        past.push((session_id, witness));
    }

    /// Path of the witness of an earlier session of this client, if it had one; `None` for any other session.
    pub(crate) fn witness_of(&self, session_id: i64) -> Option<String> {
        let past = self.past_sessions();
        past.iter().find(|(past, _)| *past == session_id).map(|(_, witness)| witness.clone())
    }

    pub(crate) fn generation(&self) -> Arc<SessionGeneration> {
        Arc::clone(&self.generations.borrow())
    }

    /// The first generation after `number`.
    pub(crate) async fn next_generation(&self, number: u64) -> Result<Arc<SessionGeneration>, Error> {
        let mut generations = self.generations.subscribe();
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(Error::new(self.closed(), "connect")),
            generation = generations.wait_for(|generation| generation.number > number) => match generation {
                Ok(generation) => Ok(Arc::clone(&generation)),
                Err(_) => Err(Error::new(self.closed(), "connect")),
            },
        }
    }
}

fn open(
    config: &Config,
    ensemble: &Ensemble,
    cleanup: &Cleanup,
    number: u64,
    last_zxid: i64,
    start: Start,
) -> (SessionGeneration, SessionTask) {
    let settings = SessionSettings {
        timeout: config.session_timeout,
        last_zxid,
        queue_limit: config.max_waiting,
        inbound_limit: config.max_reply,
        outbound_limit: config.max_request,
        ephemeral_limit: config.max_ephemeral_bytes,
        credentials: config.credentials.clone(),
    };
    let lease = Arc::new(Lease::new(config.server_tick));
    let (session, task) = open_session(config, ensemble, settings, &lease, start);
    (
        SessionGeneration::new(
            number,
            session,
            lease,
            Arc::clone(&config.clock),
            cleanup.clone(),
            config.max_request,
        ),
        task,
    )
}

fn open_session(
    config: &Config,
    ensemble: &Ensemble,
    settings: SessionSettings,
    lease: &Arc<Lease>,
    start: Start,
) -> (Arc<dyn Session>, SessionTask) {
    let (lease, clock, ensemble) = (Arc::clone(lease), Arc::clone(&config.clock), ensemble.clone());
    #[cfg(feature = "zookeeper-client")]
    if let Some(options) = config.zookeeper_client.clone() {
        let (session, task) = ZookeeperClientSession::open(settings, lease, clock, options, ensemble, start);
        return (Arc::new(session), task.boxed());
    }
    let (session, task) = WireSession::open(settings, lease, clock, Dialer::new(ensemble, start));
    (Arc::new(session), task.boxed())
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("connection", &*self.connection.borrow())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
