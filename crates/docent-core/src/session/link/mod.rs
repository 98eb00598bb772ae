//! Links to servers: how they are found and dialled, what they consist of, and auxiliary exchanges beside a
//! session.

mod closer;
pub(crate) mod dialer;
mod error;
mod side_link;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod transport;

pub(crate) use closer::SessionCloser;
pub(crate) use error::LinkError;
pub(in crate::session) use side_link::newest_transaction;
