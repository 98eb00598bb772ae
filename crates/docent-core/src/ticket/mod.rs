//! Tickets: protected ephemeral-sequential nodes, each a place in a line. Locks and elections are built on them.

mod draw;
mod hold;
mod line;
mod name;
mod participant;
mod place;
mod wait;

pub use hold::Hold;
pub(crate) use line::REVOKE;
pub use line::{Line, LineKey, Ticket};
pub use participant::Participant;
pub use wait::WaitError;
