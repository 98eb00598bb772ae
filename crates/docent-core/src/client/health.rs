use crate::client::Client;
use crate::client::state::ConnectionStatus;
use std::time::Duration;

/// Health of a client. See [`Client::health`].
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

impl Client {
    /// The client's present health, without I/O.
    pub fn health(&self) -> Health {
        let core = self.core();
        let generation = core.generation();
        let left = generation.lease.deadline().since(generation.clock.now());
        Health {
            connection: *core.connection.borrow(),
            lease_left: Some(left).filter(|left| !left.is_zero()),
            guards: generation.held.live(),
            missing_nodes: core
                .kept
                .missing(generation.number)
                .iter()
                .map(|path| core.namespace.relative(path))
                .collect(),
            last_error: core.ensemble.last_error.get().map(|error| error.chain()),
        }
    }
}
