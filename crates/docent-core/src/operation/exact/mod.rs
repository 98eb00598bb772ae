//! Exact writes: several operations in one multi that also sets a marker of ours from a known version.
//!
//! While a session lives, each of its unanswered writes may be applied at any later time: a server that was
//! cut off may pass it on long after the client has gone elsewhere. An exact write is applied at most once,
//! because its marker has the version that it asks for only once; and it can be fenced out, because a marker
//! that was moved on refuses it for good. So the outcome of a write whose reply was lost is always found out
//! while the session lives. See decisions 5 and 11.

mod marker;
mod pool;
mod write;

pub(crate) use marker::{Marker, NoMarker, take};
pub(crate) use pool::{Markers, trim};
pub(crate) use write::{Ended, ExactWrite, PAUSE};
