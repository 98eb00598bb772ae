use super::{Common, Glances, SessionNotes};
use crate::cleanup::Cleanup;
use crate::client::{
    Config, ConnectionState, ConnectionStatus, MultiReadSupport, Recipe, RecipeKind, Stage, Stages,
};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::kept::KeptTable;
use crate::node::ClientIdentity;
use crate::node::namespace::Namespace;
use crate::session::connect_string::ServerAddress;
use crate::session::lease::Lease;
use crate::session::link::dialer::{Dialer, Ensemble, Start};
#[cfg(feature = "zookeeper-client")]
use crate::session::zookeeper_client::ZookeeperClientSession;
use crate::session::{Ids, Session, SessionContext, SessionEnd, SessionSettings, WireSession};
use crate::telemetry::Instruments;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Settings and state of a client, which its handles share with its two tasks.
pub(crate) struct Shared {
    /// Tells clients of one process apart.
    pub(crate) id: u64,
    /// Tells them apart in logs and metrics.
    pub(crate) label: Arc<str>,
    pub(crate) config: Config,
    pub(crate) namespace: Namespace,
    pub(crate) instruments: Arc<Instruments>,
    /// Written into nodes when the caller gives no data.
    pub(crate) identity: String,
    /// Written where Curator's recipes write their default.
    pub(crate) default_data: String,
    pub(crate) ensemble: Ensemble,
    pub(crate) connection: watch::Sender<ConnectionStatus>,
    pub(crate) multi_reads: MultiReadSupport,
    /// Folder in which a session of the client last found a place for its own nodes; empty for the root.
    pub(crate) own_base: Mutex<Option<String>>,
    /// Runtime of the client's tasks but the supervisor, and of the threads that its views' hooks run on.
    pub(crate) runtime: Handle,
    /// Progress of its shutdown.
    pub(crate) stages: Stages,
    /// Cancelled when the client is to close.
    pub(crate) closing: CancellationToken,
    /// Cancelled when nothing is left to do.
    pub(crate) finished: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) generations: watch::Sender<Arc<SessionGeneration>>,
    pub(crate) cleanup: Cleanup,
    pub(crate) kept: KeptTable,
    pub(crate) notes: SessionNotes,
    pub(crate) glances: Glances,
    pub(crate) common: Common,
    /// Sessions of earlier generations, with the paths of their witnesses.
    past_sessions: Mutex<Vec<(i64, String)>>,
}

/// Runs a session until it ends.
pub(crate) type SessionTask = BoxFuture<'static, SessionEnd>;

impl Shared {
    /// The state of a client that is being built, and the first session's task.
    pub(crate) fn new(
        config: Config,
        namespace: Namespace,
        default_data: String,
        servers: Vec<ServerAddress>,
        runtime: Handle,
        cleanup: Cleanup,
    ) -> (Arc<Self>, SessionTask) {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let label: Arc<str> = config.label.clone().unwrap_or_else(|| id.to_string()).into();
        let local = || ClientIdentity::local(config.label.clone()).to_string();
        let identity = config.identity.clone().unwrap_or_else(local);
        let instruments = Arc::new(Instruments::new(&label));
        let ensemble = Ensemble::new(Arc::clone(&config.transport), servers, Arc::clone(&instruments));
        let connection = ConnectionStatus {
            state: ConnectionState::Connecting,
            generation: 1,
            suspensions: 0,
            rollbacks: 0,
        };
        let (generation, task) = open(&config, &label, &ensemble, &cleanup, 1, 0, Start::AtOnce);
        let shared = Self {
            id,
            label,
            config,
            namespace,
            instruments,
            identity,
            default_data,
            ensemble,
            connection: watch::Sender::new(connection),
            multi_reads: MultiReadSupport::default(),
            own_base: Mutex::default(),
            runtime,
            stages: Stages::default(),
            closing: CancellationToken::new(),
            finished: CancellationToken::new(),
            tasks: TaskTracker::new(),
            generations: watch::Sender::new(Arc::new(generation)),
            cleanup,
            kept: KeptTable::default(),
            notes: SessionNotes::default(),
            glances: Glances::default(),
            common: Common::default(),
            past_sessions: Mutex::default(),
        };
        (Arc::new(shared), task)
    }

    /// The recipe of this kind, whose metrics begin with its first use.
    pub(crate) fn recipe(&self, kind: &'static RecipeKind) -> Recipe {
        Recipe::new(kind, self.instruments.recipe(kind.label(), kind.operations()))
    }

    /// True when nothing of `stage` may begin any more: the client is closed, or its shutdown has come that
    /// far.
    pub(crate) fn refuses(&self, stage: Stage) -> bool {
        self.closing.is_cancelled() || self.stages.has_come(stage)
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

    /// Number of nodes, at most 64, that fit into one reply for certain, each as large as the servers take
    /// it.
    pub(crate) fn most_in_a_read(&self) -> usize {
        const MOST: usize = 64;
        const HEADER_AND_STAT: usize = 256;
        (self.config.max_reply / (self.config.max_request + HEADER_AND_STAT)).clamp(1, MOST)
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
        let Self { config, label, ensemble, cleanup, .. } = self;
        let (generation, task) = open(config, label, ensemble, cleanup, number, last_zxid, Start::Jittered);
        let generation = Arc::new(generation);
        self.generations.send_replace(Arc::clone(&generation));
        (generation, task)
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
    label: &Arc<str>,
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
    let (clock, max_request) = (Arc::clone(&config.clock), config.max_request);
    let (client, ids) = (Arc::clone(label), Ids::default());
    let context = SessionContext { client, number, session, lease, clock, max_request, ids };
    (SessionGeneration::new(context, cleanup.clone()), task)
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

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("connection", &*self.connection.borrow())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
