use crate::error::Error;
use crate::node::{AclPolicy, CreateMode};
use crate::session::ephemerals::MAX_EPHEMERAL_BYTES;
use crate::session::link::transport::{TcpTransport, Transport};
#[cfg(feature = "zookeeper-client")]
use crate::session::zookeeper_client::ZookeeperClient;
use crate::session::{Credentials, Sasl};
use crate::time::{BootClock, Clock, RetryPolicy};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Kind of node that missing parents are created as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ParentKind {
    /// Containers, which the server deletes some time after their last child was deleted.
    ///
    /// Nothing is left behind. But a client of another library that watches the folder may never learn of
    /// later children: the watches of kazoo and of Dubbo end when the folder is deleted.
    #[default]
    Container,
    /// Persistent nodes, which remain when they are empty. For folders that other libraries watch, and for
    /// servers before 3.5.3.
    Persistent,
}

impl ParentKind {
    pub(crate) fn mode(self) -> CreateMode {
        match self {
            Self::Container => CreateMode::Container,
            Self::Persistent => CreateMode::Persistent,
        }
    }
}

/// Policy for servers that were restored from an older snapshot. Transaction numbers, and with them fences,
/// then restart at a lower number. A resource that has seen a higher fence refuses all new ones, and a
/// resource that has not cannot distinguish new fences from old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RollbackPolicy {
    /// Stop: every operation fails with `EnsembleRolledBack`, so that a person can decide.
    #[default]
    Stop,
    /// Open a new session that has seen no transactions.
    /// [`ConnectionStatus::rollbacks`](crate::ConnectionStatus) counts the restore, and guards report that
    /// their fence may be lower than earlier ones.
    StartAfresh,
}

impl FromStr for ParentKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "container" => Ok(Self::Container),
            "persistent" => Ok(Self::Persistent),
            _ => {
                let detail = format!("parents {text:?} must be \"container\" or \"persistent\"");
                Err(Error::invalid_input("options", detail))
            }
        }
    }
}

impl fmt::Display for ParentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mode().fmt(f)
    }
}

impl fmt::Display for RollbackPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "stop",
            Self::StartAfresh => "start afresh",
        })
    }
}

/// Settings of a client; see the setters of [`ClientBuilder`](crate::ClientBuilder).
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) namespace: String,
    pub(crate) session_timeout: Duration,
    pub(crate) operation_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) server_tick: Duration,
    pub(crate) accept_short_lease: bool,
    pub(crate) dedicated_thread: bool,
    pub(crate) inline_hooks: bool,
    pub(crate) persistent_watches: bool,
    pub(crate) track_ensemble: bool,
    pub(crate) read_only: bool,
    pub(crate) on_rollback: RollbackPolicy,
    pub(crate) end_session_on_refused_delete: bool,
    pub(crate) parents: ParentKind,
    pub(crate) identity: Option<String>,
    pub(crate) label: Option<String>,
    /// Users and passwords, until they are validated and turned into credentials.
    pub(crate) digests: Vec<(String, SecretString)>,
    pub(crate) credentials: Vec<Credentials>,
    pub(crate) sasl: Option<Sasl>,
    pub(crate) allow_plaintext_auth: bool,
    pub(crate) acl: AclPolicy,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::session::link::tls::Tls>,
    pub(crate) max_request: usize,
    pub(crate) max_reply: usize,
    pub(crate) max_waiting: usize,
    pub(crate) max_ephemeral_bytes: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transport: Arc<dyn Transport>,
    /// `None` for Docent's own sessions.
    #[cfg(feature = "zookeeper-client")]
    pub(crate) zookeeper_client: Option<ZookeeperClient>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            session_timeout: Duration::from_secs(20),
            operation_timeout: Duration::from_secs(15),
            retry: RetryPolicy::default(),
            server_tick: Duration::from_secs(2),
            accept_short_lease: false,
            dedicated_thread: false,
            inline_hooks: false,
            persistent_watches: false,
            track_ensemble: false,
            read_only: false,
            on_rollback: RollbackPolicy::default(),
            end_session_on_refused_delete: false,
            parents: ParentKind::default(),
            identity: None,
            label: None,
            digests: Vec::new(),
            credentials: Vec::new(),
            sasl: None,
            allow_plaintext_auth: false,
            acl: AclPolicy::default(),
            #[cfg(feature = "tls")]
            tls: None,
            max_request: 1024 * 1024 - 1,
            max_reply: 64 * 1024 * 1024,
            max_waiting: 10_000,
            max_ephemeral_bytes: MAX_EPHEMERAL_BYTES,
            clock: Arc::new(BootClock),
            transport: Arc::new(TcpTransport),
            #[cfg(feature = "zookeeper-client")]
            zookeeper_client: None,
        }
    }
}
