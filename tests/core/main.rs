//! The client, on the embedded server and on a real ZooKeeper.

mod bad_input;
mod close;
mod operations;
