mod attempt;
mod config;
mod discovery;
mod double_barrier;
mod election;
mod fault;
mod id;
mod kind;
mod link_state;
mod queue;

pub use attempt::{Attempt, Ending, Grant, Handle, Role, Turn, Use};
pub use config::{Following, Outcome, Publishing, Way};
pub use discovery::{Announcing, Listed, Viewing};
pub use double_barrier::Meeting;
pub use election::{Candidacy, Observing};
pub use fault::FaultKind;
pub use id::{AttemptId, CallId, ClientId};
pub use kind::EventKind;
pub use link_state::LinkState;
pub use queue::{Delivering, Putting, Settlement, Taking};

use std::fmt;
use std::time::Duration;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// Time since the run began, on one clock for all clients and the server.
    pub at: Duration,
    /// Client at which the event happened; `None` if it concerns the whole world.
    pub client: Option<ClientId>,
    /// Kind of the event.
    pub kind: EventKind,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.4} ", self.at.as_secs_f64())?;
        match self.client {
            Some(client) => write!(f, "{:<6}", client.to_string())?,
            None => write!(f, "{:<6}", "world")?,
        }
        write!(f, " {:?}", self.kind)
    }
}
