//! Tests of recognition with tables of nodes, without a server.

mod elections;
mod hostile;
mod json;
mod locks;
mod members;
mod queues;
mod semaphores;
mod services;
mod sessions;
mod tree;
mod values;

/// A UUID with its hyphens.
const UUID: &str = "9a794062-0b31-421c-9cfe-0699f14437da";

/// 32 hexadecimal digits, as in the node names of kazoo and the Go client.
const HEX: &str = "8eb6557ec51a32d1e0cb91e4d5e9a5c5";

/// Identity as Docent writes it.
const DOCENT: &str = "web-1 (pid 12, nightly import)";

/// Data that Curator writes by default.
const ADDRESS: &str = "10.0.0.7";
