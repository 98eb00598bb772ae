//! Streams of what a watched node shows.

mod stream;

pub use stream::WatchStream;
pub(crate) use stream::{LONGEST_PAUSE, patience};
