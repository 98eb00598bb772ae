//! Faults at requests: the kinds of requests they wait for, and the handle that tells when one has happened.

mod armed;
mod operation;

pub use armed::Armed;
pub use operation::Operation;
