//! Our own implementation of a session.
//!
//! [`machine`] is the protocol, pure: time and bytes go in, bytes and outcomes come out. [`driver`] runs it
//! over a link.

mod driver;
mod machine;
mod persistent;
mod session;
mod support;
mod watches;

#[cfg(feature = "zookeeper-client")]
pub(in crate::session) use machine::{proves_session, verdict};
pub(crate) use session::WireSession;
