use crate::instance::{EncodedInstance, is_loopback};
use docent_core::Client;

/// Warns of an instance that only callers on its own host can reach. If the servers are on that host as well,
/// as in development, this is no surprise.
pub(super) fn warn_of_loopback(client: &Client, service: &str, encoded: &EncodedInstance) {
    let Some(address) = encoded.address.as_deref().filter(|address| is_loopback(address)) else { return };
    if client.servers().iter().all(|server| is_loopback(&server.host)) {
        return;
    }
    // Event: An instance was registered with a loopback address, while the servers are on other hosts. A
    // caller on another host that picks this instance connects to its own host instead.
    // Action: Register the host name or the IP address at which callers reach the process.
    tracing::warn!(
        target: "docent::discovery",
        client = %client.label(),
        service,
        id = encoded.id,
        address,
        "registering a loopback address, which callers on other hosts cannot reach"
    );
}
