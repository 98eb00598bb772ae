//! Tickets: protected ephemeral-sequential nodes, each a place in a line. Locks and elections are built on them.

mod counted;
mod downgrade;
mod draw;
mod hold;
mod hold_set;
mod line;
mod name;
mod participant;
mod place;
mod sides;
mod wait;

pub use hold::Hold;
pub use hold_set::HoldSet;
pub(crate) use line::REVOKE;
pub use line::{Line, LineKey, Ticket};
pub use participant::Participant;
pub use sides::Role;
pub use wait::WaitError;
