use super::{CoalescedReads, Common, SessionNotes};
use crate::cleanup::Cleanup;
use crate::client::{
    Config, ConnectionState, ConnectionStatus, ParentKind, Recipe, RecipeKind, Stage, Stages,
};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::kept::KeptTable;
use crate::node::ClientIdentity;
use crate::node::namespace::Namespace;
use crate::session::abilities::{Abilities, Ability};
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Settings and state of a client, shared by its handles and its two tasks.
pub(crate) struct Shared {
    /// Number of the client in its process.
    pub(crate) id: u64,
    /// Label of the client in logs and metrics.
    pub(crate) label: Arc<str>,
    pub(crate) config: Config,
    pub(crate) namespace: Namespace,
    pub(crate) instruments: Arc<Instruments>,
    /// Text written into nodes if the caller provides no data.
    pub(crate) identity: String,
    /// Text written where Curator's recipes write their default.
    pub(crate) default_data: String,
    pub(crate) ensemble: Ensemble,
    pub(crate) connection: watch::Sender<ConnectionStatus>,
    /// What the servers can do.
    pub(crate) abilities: Arc<Abilities>,
    /// Folder in which a session of the client last found room for its own nodes; empty for the root.
    pub(crate) own_base: Mutex<Option<String>>,
    /// Runtime of the client's tasks except the supervisor, and of the threads that run its views' hooks.
    pub(crate) runtime: Handle,
    /// Progress of the client's shutdown.
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
    pub(crate) coalesced_reads: CoalescedReads,
    pub(crate) common: Common,
    /// The session timeout that the caller last learned of: requested, or granted and logged.
    known_timeout: Mutex<Duration>,
    /// True while a task logs that the client has no connection.
    pub(crate) reminding: AtomicBool,
    /// Sessions of earlier generations, with the paths of their witnesses.
    past_sessions: Mutex<Vec<(i64, String)>>,
}

/// Runs a session until it ends.
pub(crate) type SessionTask = BoxFuture<'static, SessionEnd>;

impl Shared {
    /// Creates the state of a client that is being built, and the first session's task.
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
        let abilities = Arc::new(Abilities::default());
        let known = (&ensemble, &abilities);
        let (generation, task) = open(&config, &label, known, &cleanup, 1, 0, Start::Immediately);
        let known_timeout = Mutex::new(config.session_timeout);
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
            abilities,
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
            coalesced_reads: CoalescedReads::default(),
            common: Common::default(),
            known_timeout,
            reminding: AtomicBool::new(false),
            past_sessions: Mutex::default(),
        };
        (Arc::new(shared), task)
    }

    /// Returns the kind of node that missing parents are created as instead of `kind`: persistent nodes if
    /// the servers have no containers.
    pub(crate) fn parents_as(&self, kind: ParentKind) -> ParentKind {
        match kind {
            ParentKind::Container if self.abilities.lacks(Ability::Containers) => ParentKind::Persistent,
            kind => kind,
        }
    }

    /// Returns the kind of node that missing parents are created as by default.
    pub(crate) fn parents(&self) -> ParentKind {
        self.parents_as(self.config.parents)
    }

    /// Records that the servers cannot read many nodes in one request, which only Docent's own session learns
    /// itself.
    pub(crate) fn learn_no_multi_reads(&self) {
        self.abilities.refused(Ability::MultiReads, self.config.clock.now());
    }

    /// Returns the recipe of this kind, whose metrics start with its first use.
    pub(crate) fn recipe(&self, kind: &'static RecipeKind) -> Recipe {
        Recipe { kind, metrics: self.instruments.recipe(kind.label(), kind.operations()) }
    }

    /// Returns true if nothing of `stage` may begin any more, because the client is closed or its shutdown
    /// has reached the stage.
    ///
    /// Deliveries are refused from the start of the shutdown: what is taken now would be interrupted soon,
    /// and another consumer can work on the item meanwhile.
    pub(crate) fn refuses(&self, stage: Stage) -> bool {
        let first = if stage == Stage::Deliveries { Stage::Drain } else { stage };
        self.closing.is_cancelled() || self.stages.has_begun(first)
    }

    /// Returns the reason why a client that has stopped refuses operations.
    pub(crate) fn closed(&self) -> ErrorKind {
        match self.connection.borrow().state {
            ConnectionState::RolledBack => ErrorKind::EnsembleRolledBack,
            _ => ErrorKind::Closed,
        }
    }

    /// Returns the access control list of a node to be created at the full path `full`, which excludes the
    /// number of a sequential node.
    pub(crate) fn acl(&self, full: &str) -> Arc<[docent_proto::Acl]> {
        self.config.acl.of(&self.namespace, full)
    }

    /// Returns the number of nodes, at most 64, that are certain to fit into one reply, even if each is as
    /// large as the servers accept.
    pub(crate) fn max_reads_per_request(&self) -> usize {
        const MAX_READS: usize = 64;
        const HEADER_AND_STAT: usize = 256;
        (self.config.max_reply / (self.config.max_request + HEADER_AND_STAT)).clamp(1, MAX_READS)
    }

    /// Opens the session after the one of `generation`, which ended by `end`.
    pub(crate) fn open_next(
        &self,
        generation: &SessionGeneration,
        end: SessionEnd,
    ) -> (Arc<SessionGeneration>, SessionTask) {
        // Servers that were restored refuse a client that has seen newer transactions. A fresh start
        // therefore claims to have seen none.
        let last_zxid = if end == SessionEnd::RolledBack { 0 } else { generation.session.last_zxid() };
        let number = generation.number + 1;
        self.remember(generation.session.id(), generation.witness.path(&self.namespace));
        let Self { config, label, ensemble, abilities, cleanup, .. } = self;
        let known = (ensemble, abilities);
        let (generation, task) = open(config, label, known, cleanup, number, last_zxid, Start::Jittered);
        let generation = Arc::new(generation);
        self.generations.send_replace(Arc::clone(&generation));
        (generation, task)
    }

    /// Returns true the first time that the servers grant a session timeout other than the last known one.
    /// They count in whole milliseconds.
    pub(crate) fn differs_from_known_timeout(&self, granted: Duration) -> bool {
        let mut known = self.known_timeout.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *known, granted).as_millis() != granted.as_millis()
    }

    fn past_sessions(&self) -> MutexGuard<'_, Vec<(i64, String)>> {
        self.past_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a session that has ended, with its witness. The servers keep a session for at most a
    /// timeout, so the last few are enough.
    fn remember(&self, session_id: i64, witness: String) {
        const ENOUGH: usize = 64;
        // A session that was never opened has the id 0, and so has the owner of a persistent node.
        if session_id == 0 {
            return;
        }
        let mut past = self.past_sessions();
        if past.len() == ENOUGH {
            past.remove(0);
        }
        past.push((session_id, witness));
    }

    /// Returns the path of the witness of an earlier session of this client, if it had one, and `None` for
    /// any other session.
    pub(crate) fn witness_of(&self, session_id: i64) -> Option<String> {
        let past = self.past_sessions();
        past.iter().find(|(past, _)| *past == session_id).map(|(_, witness)| witness.clone())
    }

    pub(crate) fn generation(&self) -> Arc<SessionGeneration> {
        Arc::clone(&self.generations.borrow())
    }

    /// Waits for the first generation after `number`.
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
    (ensemble, abilities): (&Ensemble, &Arc<Abilities>),
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
        sasl: config.sasl.clone(),
        only_reads: config.read_only,
        abilities: Arc::clone(abilities),
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
