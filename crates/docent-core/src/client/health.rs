use crate::operation::Shared;
use crate::setup::ConnectionStatus;
use std::time::Duration;

/// Health of a client. See [`Client::health`](crate::Client::health).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// State, generation and lost links.
    pub connection: ConnectionStatus,
    /// Time for which guards are still certain; `None` when there is no lease.
    pub lease_left: Option<Duration>,
    /// Guards that are neither lost nor released.
    pub guards: usize,
    /// Paths of kept nodes that are not known to be present in the present session.
    pub missing_nodes: Vec<String>,
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
            last_error: shared.ensemble.last_error.get().map(|error| error.chain()),
        }
    }
}
