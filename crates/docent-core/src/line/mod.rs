//! Tickets: protected ephemeral-sequential nodes, each a place in a line. Locks and elections are built on
//! tickets.

mod ahead;
mod batch;
mod downgrade;
mod draw;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod line;
mod name;
mod participant;
mod position;
mod predecessor;
mod ticket;

pub use ahead::{Ahead, OwnHolds};
pub use batch::TicketBatch;
pub use line::{Line, LineKey};
pub use name::{ContenderName, refuse_contenders};
pub use participant::Participant;
pub use ticket::{Ticket, WaitError};
