//! Tickets: protected ephemeral-sequential nodes, each a place in a line. Locks and elections are built on
//! them.

mod ahead;
mod batch;
mod common;
mod downgrade;
mod draw;
mod fresh;
mod glance;
mod intent;
mod kind;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod line;
mod name;
mod participant;
mod position;
mod predecessor;
mod probe;
mod sides;
mod ticket;
mod watches;

pub use ahead::Ahead;
pub use batch::TicketBatch;
pub use kind::{ContenderName, refuse_contenders};
pub use line::{Line, LineKey};
pub use participant::Participant;
pub use ticket::{Ticket, WaitError};
