use super::{Config, ConnectionState, ConnectionStatus, MultiReadSupport, Recipe, RecipeKind, Stage, Stages};
use crate::error::ErrorKind;
use crate::node::ClientIdentity;
use crate::node::namespace::Namespace;
use crate::session::connect_string::ServerAddress;
use crate::session::link::dialer::Ensemble;
use crate::telemetry::Instruments;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Settings of a client, and its state that outlives its sessions.
pub(crate) struct Setup {
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
}

impl Setup {
    pub(crate) fn new(
        config: Config,
        namespace: Namespace,
        default_data: String,
        servers: Vec<ServerAddress>,
        runtime: Handle,
    ) -> Self {
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
        Self {
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
        }
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
}
