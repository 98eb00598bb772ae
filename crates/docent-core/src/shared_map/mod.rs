//! An ordered map whose copies share what they have in common.

mod difference;
mod iter;
mod map;
mod part;
#[cfg(test)]
mod tests;

pub use iter::SharedMapIter;
pub use map::SharedMap;
