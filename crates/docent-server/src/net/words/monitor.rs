use super::server::VERSION;
use super::text::Text;
use super::view::View;
use crate::files::{most_files, open_files};
use std::fmt::{self, Display, Write};

/// Answers `mntr`: the gauges of a server, and those of its counters that this one has.
pub(super) fn monitor(view: View<'_>, out: &mut Text) -> fmt::Result {
    let mut say = |key: &str, value: &dyn Display| writeln!(out, "zk_{key}\t{value}");
    let totals = &view.member.totals;
    let (traffic, latency) = (totals.traffic, totals.traffic.latency);
    let sizes = totals.reply_sizes.map(|sizes| [sizes.last, sizes.least, sizes.most]);
    let [last, least, most] =
        sizes.map_or([-1; 3], |sizes| sizes.map(|size| i64::try_from(size).unwrap_or(-1)));
    say("version", &VERSION)?;
    say("server_state", &view.mode())?;
    say("ephemerals_count", &view.state.ephemerals().map(|(_, paths)| paths.len()).sum::<usize>())?;
    say("num_alive_connections", &view.links().count())?;
    say("avg_latency", &latency.exact_mean())?;
    say("outstanding_requests", &view.outstanding())?;
    say("znode_count", &view.state.node_count())?;
    say("global_sessions", &view.state.session_count())?;
    say("non_mtls_remote_conn_count", &0)?;
    say("last_client_response_size", &last)?;
    say("packets_sent", &traffic.sent)?;
    say("packets_received", &traffic.received)?;
    say("max_client_response_size", &most)?;
    say("connection_drop_probability", &"0.0")?;
    say("watch_count", &view.state.watch_count())?;
    say("auth_failed_count", &totals.auth_failures)?;
    say("min_latency", &latency.least())?;
    say("max_file_descriptor_count", &most_files())?;
    say("approximate_data_size", &view.state.data_bytes())?;
    say("open_file_descriptor_count", &open_files())?;
    say("local_sessions", &0)?;
    say("uptime", &view.now.saturating_sub(view.member.since_ms))?;
    say("max_latency", &latency.most())?;
    say("outstanding_tls_handshake", &0)?;
    say("min_client_response_size", &least)?;
    say("non_mtls_local_conn_count", &0)?;
    say("large_requests_rejected", &totals.frames_refused)?;
    say("connection_rejected", &totals.links_refused)?;
    say("bytes_received_count", &totals.bytes_received)?;
    say("connection_request_count", &totals.handshakes)
}
