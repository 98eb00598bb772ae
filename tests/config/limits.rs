//! The configuration type of the tests.

use docent_battery::TestServer;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) per_second: u32,
}

pub(crate) fn limits(per_second: u32) -> Limits {
    Limits { per_second }
}

pub(crate) fn in_range(limits: &Limits) -> Result<(), String> {
    match limits.per_second {
        1..=1_000_000 => Ok(()),
        other => Err(format!("per_second {other} must be from 1 to 1000000")),
    }
}

/// Returns the node's data for a value.
pub(crate) fn json(per_second: u32) -> String {
    format!("{{\"per_second\":{per_second}}}")
}

/// Returns the number of watches at the server, if the server can count them.
pub(crate) fn watches(server: &TestServer) -> Option<usize> {
    server.as_embedded().map(docent::server::Server::watch_count)
}
