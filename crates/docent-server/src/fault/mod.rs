//! Faults that a request triggers: the kinds of requests, and the handle that reports when a fault has
//! happened.

mod armed;
mod operation;

pub use armed::Armed;
pub use operation::Operation;
