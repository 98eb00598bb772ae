//! Links to servers: how one is found and dialled, what it is made of, and exchanges beside a session.

pub(crate) mod dialer;
mod error;
mod exchange;
mod farewell;
pub(crate) mod rollback;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod transport;

pub(crate) use error::LinkError;
pub(crate) use farewell::Farewell;
