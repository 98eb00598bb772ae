//! Docent's own implementation of a session.
//!
//! [`machine`] is the pure protocol: it takes time and bytes, and returns bytes and outcomes. [`driver`] runs
//! the machine over a link.

mod driver;
mod machine;
mod session;
mod watches;

pub(in crate::session) use machine::Statless;
#[cfg(feature = "zookeeper-client")]
pub(in crate::session) use machine::{proves_session, verdict};
pub(crate) use session::WireSession;
