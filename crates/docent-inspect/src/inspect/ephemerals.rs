use super::inspector::server_time;
use crate::nodes::Nodes;
use crate::report::Ephemeral;
use std::time::SystemTime;

/// Returns the ephemeral nodes that were read, with their ages.
pub(super) fn ephemerals(nodes: &Nodes, now: Option<SystemTime>) -> Vec<Ephemeral> {
    let Some(clock) = server_time(nodes, now) else { return Vec::new() };
    nodes
        .stats()
        .into_iter()
        .filter_map(|(path, stat)| {
            let since = clock.since(stat.created);
            Some(Ephemeral { path: path.to_owned(), session: stat.owner?, since })
        })
        .collect()
}
