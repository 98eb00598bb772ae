//! The server as a pure state machine: no I/O and no clock. Time comes in as milliseconds since 1970 and
//! never goes back.

mod acl;
mod auth;
mod behind;
mod commit;
mod database;
mod effects;
mod event;
mod events;
mod handshake;
mod image;
mod inspect;
mod journal;
mod late;
mod longest;
mod lost;
mod news;
mod node;
mod op_code;
mod origin;
mod past;
mod prepare;
mod read_only;
mod reader;
mod recursive;
mod refusal;
mod reply;
mod session;
mod sessions;
#[expect(clippy::module_inception, reason = "the folder is about it")]
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
pub(crate) use late::Late;
pub(crate) use op_code::{DELETE_CONTAINER, is_write, jumps_the_line, needs_leader};
pub(crate) use origin::Origin;
pub(crate) use past::Behind;
pub(crate) use refusal::Refusal;
pub(crate) use reply::Reply;
pub(crate) use state::State;
