//! Locks, on the embedded server and on a real ZooKeeper.

mod bad_input;
mod cancel;
mod loss;
mod order;
mod reentry;
mod restart;
