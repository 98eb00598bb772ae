//! Streams of the state of a watched node.

mod stream;

pub use stream::WatchStream;
pub(crate) use stream::read_watched;
