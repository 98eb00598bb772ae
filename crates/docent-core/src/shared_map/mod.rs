//! An ordered map whose copies share their common parts.

mod difference;
mod iter;
mod map;
mod part;
#[cfg(test)]
mod tests;

pub use iter::SharedMapIter;
pub use map::SharedMap;
