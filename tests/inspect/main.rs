//! Reports about recipes as they stand on the servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod cancelled;
mod live;
mod locks;
mod stores;
mod surveys;
mod walk;
