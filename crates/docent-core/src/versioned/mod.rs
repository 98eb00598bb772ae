//! A value in a node of its own, written exactly: what configuration, shared values and counters have in
//! common.

mod count;
mod race;
mod value;

pub use count::count;
pub use race::Race;
pub use value::Cell;
