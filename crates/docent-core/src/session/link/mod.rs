//! Links to servers: how one is found and dialled, what it is made of, and exchanges beside a session.

mod closer;
pub(crate) mod dialer;
mod error;
pub(crate) mod rollback;
mod side_link;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod transport;

pub(crate) use closer::SessionCloser;
pub(crate) use error::LinkError;
