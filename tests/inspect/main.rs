//! Reports about recipes as stored on the servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod access;
mod cancelled;
mod followed;
mod live;
mod locks;
mod stores;
mod surveys;
mod walk;
