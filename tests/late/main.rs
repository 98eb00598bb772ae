//! Writes that a follower delivers after it was cut off and their sender has moved to another server. Each is
//! refused, does no harm, or is found and undone.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod claims;
mod locks;
mod nodes;
mod queues;
mod scene;
