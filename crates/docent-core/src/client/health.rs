use super::ConnectionStatus;
use super::shutdown::is_mark;
use crate::operation::Shared;
use crate::session::abilities::Ability;
use crate::time::duration_ms;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Health of a client. See [`Client::health`](crate::Client::health).
///
/// Can be serialized for an endpoint such as `/readyz`, with the names of the fields. Only `lease_left` and
/// `session_timeout` have other names, `lease_left_ms` and `session_timeout_ms`, and are in milliseconds. The
/// value contains no secrets, only paths, and the names of servers in the last error. `Display` prints one
/// line.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// State, generation and lost links.
    pub connection: ConnectionStatus,
    /// Time for which guards are still certain; `None` if there is no lease.
    #[serde(rename = "lease_left_ms", serialize_with = "duration_ms")]
    pub lease_left: Option<Duration>,
    /// Session timeout that the servers granted; `None` before the first link.
    #[serde(rename = "session_timeout_ms", serialize_with = "duration_ms")]
    pub session_timeout: Option<Duration>,
    /// Reason why locks, elections and other guards fail with `ShortLease`, such as a granted session timeout
    /// below four server ticks; `None` if they are granted.
    pub refuses_locks: Option<String>,
    /// Guards that are neither lost nor released.
    pub guards: usize,
    /// Paths of kept nodes that are not known to be present in the current session.
    pub missing_nodes: Vec<String>,
    /// Paths of nodes of earlier sessions of this client that may still exist, because the servers have not
    /// yet proved that these sessions have ended. If such a node is in the line of a lock, the next holder
    /// may have to wait until the node is deleted.
    pub lingering_nodes: Vec<String>,
    /// True while caches use [persistent watches](crate::ClientBuilder::persistent_watches) on the current
    /// link.
    pub persistent_watches: bool,
    /// What the servers are known not to support, such as containers; the client uses something else where it
    /// can. Older ZooKeepers and ClickHouse Keeper lack some operations.
    pub unsupported: Vec<&'static str>,
    /// True if the servers restore no sessions, as ClickHouse Keeper: each lost connection ends the session,
    /// and every guard with it.
    pub session_per_connection: bool,
    /// Reason why the last attempt to open a link failed; `None` if a link was opened since.
    pub last_error: Option<String>,
}

impl Health {
    pub(super) fn of(shared: &Shared) -> Self {
        let generation = shared.generation();
        let left = generation.lease.deadline().since(generation.clock.now());
        let session_timeout = Some(generation.lease.timeout()).filter(|timeout| !timeout.is_zero());
        Self {
            connection: *shared.connection.borrow(),
            lease_left: Some(left).filter(|left| !left.is_zero()),
            session_timeout,
            refuses_locks: session_timeout
                .and_then(|_| generation.refuses_guards(shared.config.accept_short_lease)),
            guards: generation.held.live(),
            missing_nodes: shared
                .kept
                .missing(generation.number)
                .iter()
                .map(|path| shared.namespace.relative(path))
                .collect(),
            lingering_nodes: lingering(shared),
            persistent_watches: generation.session.has_persistent(),
            unsupported: Ability::ALL
                .into_iter()
                .filter(|ability| shared.abilities.lacks(*ability))
                .map(Ability::requirement)
                .collect(),
            session_per_connection: shared.abilities.is_keeper(),
            last_error: shared.ensemble.link_status.last_error().map(|error| error.chain()),
        }
    }
}

/// Returns the nodes of earlier sessions that may exist, except the client's own marks, which do not block
/// other clients.
fn lingering(shared: &Shared) -> Vec<String> {
    let lingering = shared.notes.lingering().into_iter().flat_map(|(_, paths)| paths);
    let paths = lingering.map(|full| shared.namespace.relative(&full));
    let mut paths: Vec<_> = paths.filter(|path| !is_mark(path)).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.connection)?;
        match self.lease_left {
            Some(left) => write!(f, ", lease {left:.1?}")?,
            None => f.write_str(", no lease")?,
        }
        if let Some(reason) = &self.refuses_locks {
            write!(f, ", refuses locks ({reason})")?;
        }
        write!(f, ", guards {}", self.guards)?;
        if !self.missing_nodes.is_empty() {
            write!(f, ", missing {}", self.missing_nodes.join(" "))?;
        }
        if !self.lingering_nodes.is_empty() {
            write!(f, ", lingering {}", self.lingering_nodes.join(" "))?;
        }
        self.last_error.iter().try_for_each(|error| write!(f, ": {error}"))
    }
}
