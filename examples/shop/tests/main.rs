//! The shop and its callers while copies and servers fail and return, on the embedded server and on a real
//! ZooKeeper. Copies are processes, which end with the test in any case.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod fence;
mod life;
mod mishaps;
mod scene;
mod show;
