//! Elections, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod bad_input;
mod batteries;
mod bound;
mod candidate;
mod contender;
mod cost;
mod crowd;
mod failures;
mod frozen;
mod grace;
mod layout;
mod liveness;
mod observe;
mod outages;
mod resign;
mod takeover;
mod terms;
mod work;
