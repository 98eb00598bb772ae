//! A client on a simulated network in virtual time, with servers that are scripted frame by frame.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod dialing;
mod link;
mod refused_credentials;
mod session_close;
