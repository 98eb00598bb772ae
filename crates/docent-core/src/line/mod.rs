//! Tickets: protected ephemeral-sequential nodes, each a place in a line. Locks and elections are built on
//! tickets.

mod ahead;
mod batch;
mod coalesced;
mod common;
mod downgrade;
mod draw;
mod fresh;
mod intent;
mod kind;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod line;
mod name;
mod participant;
mod position;
mod predecessor;
mod probe;
mod sides;
mod ticket;
mod watches;

pub use ahead::{Ahead, OwnHolds};
pub use batch::TicketBatch;
pub use kind::{ContenderName, refuse_contenders};
pub use line::{Line, LineKey};
pub use participant::Participant;
pub use ticket::{Ticket, WaitError};
