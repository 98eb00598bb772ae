//! Writes that a follower which was cut off from its leader delivers once their sender has gone elsewhere:
//! each is refused, does no harm, or is found and undone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod claims;
mod locks;
mod nodes;
mod queues;
mod scene;
