mod announcing;
mod attempt;
mod electing;
mod fault;
mod id;
mod link_state;
mod meeting;
mod publishing;
mod queueing;
mod what;

pub use announcing::{Announcing, Listed, Viewing};
pub use attempt::{Attempt, Ending, Grant, Handle, Role, Use};
pub use electing::{Candidacy, Onlooking};
pub use fault::FaultKind;
pub use id::{AttemptId, CallId, ClientId};
pub use link_state::LinkState;
pub use meeting::Meeting;
pub use publishing::{Following, Outcome, Publishing, Way};
pub use queueing::{Delivering, Putting, Taking};
pub use what::What;

use std::fmt;
use std::time::Duration;

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// Time since the run began. One clock for all clients and the server.
    pub at: Duration,
    /// The client it happened at; `None` for the world as a whole.
    pub client: Option<ClientId>,
    /// The kind of the event.
    pub what: What,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.4} ", self.at.as_secs_f64())?;
        match self.client {
            Some(client) => write!(f, "{:<6}", client.to_string())?,
            None => write!(f, "{:<6}", "world")?,
        }
        write!(f, " {:?}", self.what)
    }
}
