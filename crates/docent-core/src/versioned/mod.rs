//! A value in a node of its own, written exactly: what configuration, shared values and counters have in common.

mod race;
mod value;

pub use race::Race;
pub use value::Cell;

/// The number in a node of Curator's `SharedCount`: the first four bytes, of which the first is the highest. `None` when there are
/// fewer.
pub fn count(data: &[u8]) -> Option<i32> {
    data.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}
