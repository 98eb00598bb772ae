use super::{Common, Glances, SessionNotes};
use crate::cleanup::{Cleanup, CleanupContext, Host};
use crate::desired::KeptTable;
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::session::lease::Lease;
use crate::session::link::dialer::{Dialer, Start};
#[cfg(feature = "zookeeper-client")]
use crate::session::zookeeper_client::ZookeeperClientSession;
use crate::session::{Ids, Session, SessionContext, SessionEnd, SessionSettings, WireSession};
use crate::setup::Setup;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// State that the handles of one client share with its two tasks.
pub(crate) struct Shared {
    setup: Setup,
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

impl Deref for Shared {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl Shared {
    pub(crate) fn new(setup: Setup, cleanup: Cleanup) -> (Arc<Self>, SessionTask) {
        let (generation, task) = open(&setup, &cleanup, 1, 0, Start::AtOnce);
        let shared = Self {
            setup,
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
        let (generation, task) = open(&self.setup, &self.cleanup, number, last_zxid, Start::Jittered);
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
    setup: &Setup,
    cleanup: &Cleanup,
    number: u64,
    last_zxid: i64,
    start: Start,
) -> (SessionGeneration, SessionTask) {
    let config = &setup.config;
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
    let (session, task) = open_session(setup, settings, &lease, start);
    let (clock, max_request) = (Arc::clone(&config.clock), config.max_request);
    let client = Arc::clone(&setup.label);
    let ids = Ids::default();
    let context = SessionContext { client, number, session, lease, clock, max_request, ids };
    (SessionGeneration::new(CleanupContext::new(context, cleanup.clone())), task)
}

fn open_session(
    setup: &Setup,
    settings: SessionSettings,
    lease: &Arc<Lease>,
    start: Start,
) -> (Arc<dyn Session>, SessionTask) {
    let config = &setup.config;
    let (lease, clock, ensemble) = (Arc::clone(lease), Arc::clone(&config.clock), setup.ensemble.clone());
    #[cfg(feature = "zookeeper-client")]
    if let Some(options) = config.zookeeper_client.clone() {
        let (session, task) = ZookeeperClientSession::open(settings, lease, clock, options, ensemble, start);
        return (Arc::new(session), task.boxed());
    }
    let (session, task) = WireSession::open(settings, lease, clock, Dialer::new(ensemble, start));
    (Arc::new(session), task.boxed())
}

impl Host for Shared {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn next_session(&self, number: u64) -> BoxFuture<'_, Option<Arc<CleanupContext>>> {
        async move { self.next_generation(number).await.ok().map(|next| Arc::<CleanupContext>::clone(&next)) }
            .boxed()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("connection", &*self.connection.borrow())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
