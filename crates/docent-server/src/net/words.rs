//! Four-letter words: commands in place of a handshake, answered with text.

use super::ensemble::Ensemble;
use std::fmt::Write;

/// Length of a command.
pub(crate) const LENGTH: usize = 4;

/// The answer to a command; `None` when it is none.
pub(crate) fn answer(word: &[u8], ensemble: &Ensemble) -> Option<String> {
    match word {
        b"ruok" => Some("imok".to_owned()),
        b"srvr" | b"stat" => Some(server(ensemble)),
        b"mntr" => Some(monitor(ensemble)),
        _ => None,
    }
}

const VERSION: &str = concat!("3.8.0-docent-", env!("CARGO_PKG_VERSION"));

fn server(ensemble: &Ensemble) -> String {
    let state = &ensemble.state;
    format!(
        "Zookeeper version: {VERSION}\nConnections: {}\nOutstanding: 0\nZxid: {:#x}\nMode: standalone\nNode count: {}\n",
        ensemble.links.count(),
        state.zxid(),
        state.node_count(),
    )
}

fn monitor(ensemble: &Ensemble) -> String {
    let state = &ensemble.state;
    let ephemerals: usize = state.session_ids().iter().map(|id| state.ephemeral_count(*id)).sum();
    let mut text = format!("zk_version\t{VERSION}\nzk_server_state\tstandalone\n");
    for (key, value) in [
        ("num_alive_connections", ensemble.links.count()),
        ("outstanding_requests", 0),
        ("znode_count", state.node_count()),
        ("watch_count", state.watch_count()),
        ("ephemerals_count", ephemerals),
        ("global_sessions", state.session_ids().len()),
        ("approximate_data_size", state.data_bytes()),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "zk_{key}\t{value}");
    }
    text
}
