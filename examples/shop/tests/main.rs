//! The shop and its callers while copies and servers come and go, on the embedded server and on a real
//! ZooKeeper. Copies are processes; they end with the test, however that does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fence;
mod life;
mod mishaps;
mod scene;
mod show;
