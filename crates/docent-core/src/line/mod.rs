//! Tickets: protected ephemeral-sequential nodes, each a place in a line. Locks and elections are built on
//! them.

mod blocker;
mod contenders;
mod counted;
mod downgrade;
mod draw;
mod hold;
mod hold_set;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod line;
mod look;
mod name;
mod participant;
mod patience;
mod place;
mod proof;
mod sides;
mod turn;

pub use hold::Hold;
pub use hold_set::HoldSet;
pub use line::{Line, LineKey, Ticket};
pub use participant::Participant;
pub use sides::Role;
pub use turn::WaitError;
