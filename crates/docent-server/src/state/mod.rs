//! The server as a pure state machine, without I/O and without a clock. Callers pass the time as milliseconds
//! since 1970, and it never goes back.

mod acl;
mod auth;
mod commit;
mod database;
mod effects;
mod event;
mod events;
mod handshake;
mod held_write;
mod image;
mod inspect;
mod journal;
mod longest;
mod lost;
mod node;
mod op_code;
mod origin;
mod past;
mod past_event;
mod prepare;
mod read_only;
mod reader;
mod recursive;
mod refusal;
mod reply;
mod sasl;
mod session;
mod sessions;
mod stale;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod state;
mod tree;
mod watch_requests;
mod watch_table;
mod watches;
mod writer;

#[cfg(test)]
mod sequences;
#[cfg(test)]
mod tests;

pub(crate) use effects::Effects;
pub(crate) use events::Events;
pub(crate) use handshake::{Handshake, granted};
pub(crate) use held_write::HeldWrite;
pub(crate) use op_code::{DELETE_CONTAINER, is_write, jumps_the_line, needs_leader};
pub(crate) use origin::Origin;
pub(crate) use past::Staleness;
pub(crate) use refusal::Refusal;
pub(crate) use reply::Reply;
pub(crate) use state::State;
