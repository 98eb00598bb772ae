use super::text::Text;
use super::view::View;
use crate::files::{most_files, open_files};
use std::fmt::{self, Display, Write};

/// Answers `mntr`: all gauges, and those counters that this server maintains.
pub(super) fn monitor(view: View<'_>, out: &mut Text) -> fmt::Result {
    let mut line = |key: &str, value: &dyn Display| writeln!(out, "zk_{key}\t{value}");
    let totals = &view.member.totals;
    let (traffic, latency) = (totals.traffic, totals.traffic.latency);
    let sizes = totals.reply_sizes.map(|sizes| [sizes.last, sizes.least, sizes.most]);
    let [last, least, most] =
        sizes.map_or([-1; 3], |sizes| sizes.map(|size| i64::try_from(size).unwrap_or(-1)));
    line("version", &view.dialect().version())?;
    line("server_state", &view.mode())?;
    line("ephemerals_count", &view.state.ephemerals().map(|(_, paths)| paths.len()).sum::<usize>())?;
    line("num_alive_connections", &view.links().count())?;
    line("avg_latency", &latency.exact_mean())?;
    line("outstanding_requests", &view.outstanding())?;
    line("znode_count", &view.state.node_count())?;
    line("global_sessions", &view.state.session_count())?;
    line("non_mtls_remote_conn_count", &0)?;
    line("last_client_response_size", &last)?;
    line("packets_sent", &traffic.sent)?;
    line("packets_received", &traffic.received)?;
    line("max_client_response_size", &most)?;
    line("connection_drop_probability", &"0.0")?;
    line("watch_count", &view.state.watch_count())?;
    line("auth_failed_count", &totals.auth_failures)?;
    line("min_latency", &latency.least())?;
    line("max_file_descriptor_count", &most_files())?;
    line("approximate_data_size", &view.state.data_bytes())?;
    line("open_file_descriptor_count", &open_files())?;
    line("local_sessions", &0)?;
    line("uptime", &view.now.saturating_sub(view.member.since_ms))?;
    line("max_latency", &latency.most())?;
    line("outstanding_tls_handshake", &0)?;
    line("min_client_response_size", &least)?;
    line("non_mtls_local_conn_count", &0)?;
    line("large_requests_rejected", &totals.frames_refused)?;
    line("connection_rejected", &totals.links_refused)?;
    line("bytes_received_count", &totals.bytes_received)?;
    line("connection_request_count", &totals.handshakes)
}
