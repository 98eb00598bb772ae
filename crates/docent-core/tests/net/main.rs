//! A client on a network of its own and on virtual time: servers that are written out frame by frame.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dialing;
mod farewell;
mod link;
mod refused_credentials;
