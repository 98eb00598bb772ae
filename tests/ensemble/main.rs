//! Recipes under load on a real ensemble of three servers, with faults.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod contest;
mod crashes;
mod exclusive;
mod fleet;
mod jobs;
mod late;
mod ownership;
mod quorum;
mod reconfig;
mod settings;
mod silence;
mod unanswered;
