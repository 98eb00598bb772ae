//! Wrong input, missing permissions and unreachable servers: what the errors and the log say.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod log;
mod operations;
mod session_timeout;
mod texts;
