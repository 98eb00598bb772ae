use super::ConnectionStatus;
use super::shutdown_report::is_mark;
use crate::operation::Shared;
use crate::time::duration_ms;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Health of a client. See [`Client::health`](crate::Client::health).
///
/// It is serialized with the same names, for a page like `/readyz`; `lease_left` as `lease_left_ms`, in
/// milliseconds. It has no secrets: paths, and the names of servers in the last error. Printed, it is one
/// line.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// State, generation and lost links.
    pub connection: ConnectionStatus,
    /// Time for which guards are still certain; `None` when there is no lease.
    #[serde(rename = "lease_left_ms", serialize_with = "duration_ms")]
    pub lease_left: Option<Duration>,
    /// Guards that are neither lost nor released.
    pub guards: usize,
    /// Paths of kept nodes that are not known to be present in the present session.
    pub missing_nodes: Vec<String>,
    /// Paths of nodes of earlier sessions of this client that may still exist, because the servers did not
    /// yet prove that these sessions are over. A lock whose node is among them may wait for it.
    pub lingering_nodes: Vec<String>,
    /// True while caches use [persistent watches](crate::ClientBuilder::persistent_watches) on the present
    /// link.
    pub persistent_watches: bool,
    /// Reason why there was no link when one was last looked for; `None` when one was found.
    pub last_error: Option<String>,
}

impl Health {
    pub(super) fn of(shared: &Shared) -> Self {
        let generation = shared.generation();
        let left = generation.lease.deadline().since(generation.clock.now());
        Self {
            connection: *shared.connection.borrow(),
            lease_left: Some(left).filter(|left| !left.is_zero()),
            guards: generation.held.live(),
            missing_nodes: shared
                .kept
                .missing(generation.number)
                .iter()
                .map(|path| shared.namespace.relative(path))
                .collect(),
            lingering_nodes: lingering(shared),
            persistent_watches: generation.session.has_persistent(),
            last_error: shared.ensemble.last_error.get().map(|error| error.chain()),
        }
    }
}

/// Nodes of earlier sessions that may exist, without the client's own marks, for which nobody waits.
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
