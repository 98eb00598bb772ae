//! Scripts: their text, their requests, and the replies to them.

pub(crate) mod decode;
pub(crate) mod encode;
mod operation;
pub(crate) mod piece;
mod step;

pub use operation::Operation;
pub use step::{Action, Step, parse, print};
