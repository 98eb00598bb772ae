//! Recipes at work on a real ensemble of three servers, with faults.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod contest;
mod crashes;
mod exclusive;
mod fleet;
mod jobs;
mod late;
mod ownership;
mod quorum;
mod settings;
mod silence;
mod unanswered;
