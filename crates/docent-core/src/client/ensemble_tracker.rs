//! Follows the ensemble's own list of servers.

use super::Client;
use crate::error::Error;
use crate::node::Node;
use crate::operation::Shared;
use crate::session::connect_string::ServerAddress;
use futures_util::future::join_all;
use futures_util::stream::{Stream, StreamExt};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Pause before the servers that could not be reached are tried again.
const PAUSE: Duration = Duration::from_secs(60);

/// Time limit for connecting to one server.
const LIMIT: Duration = Duration::from_secs(5);

/// The ensemble's list of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Announced {
    /// Number of the configuration, which increases with each change.
    version: u64,
    servers: Vec<ServerAddress>,
}

/// Starts the task that keeps the client's list of servers up to date.
pub(super) fn start(client: &Client) {
    let (shared, configs) = (Arc::clone(client.shared()), client.watch_config());
    let runtime = shared.runtime.clone();
    client.shared().tasks.spawn_on(track(shared, configs), &runtime);
}

async fn track(shared: Arc<Shared>, configs: impl Stream<Item = Result<Option<Node>, Error>> + Send) {
    let mut configs = pin!(configs);
    let mut announced = Announced::default();
    let mut is_complete = true;
    loop {
        tokio::select! {
            () = shared.closing.cancelled() => return,
            config = configs.next() => match config {
                Some(Ok(Some(node))) => match parse(&String::from_utf8_lossy(&node.data)) {
                    // A server that lags behind may still have an older list.
                    Some(newer) if newer.version >= announced.version => announced = newer,
                    _ => continue,
                },
                Some(Ok(None) | Err(_)) => continue,
                None => return,
            },
            () = sleep(PAUSE), if !is_complete => {}
        }
        tokio::select! {
            () = shared.closing.cancelled() => return,
            adopted = adopt(&shared, &announced.servers) => is_complete = adopted,
        }
    }
}

/// Replaces the client's list by those of the `announced` servers that can be reached. Leaves it unchanged if
/// there are none. Returns true if all of them are in the list now.
async fn adopt(shared: &Shared, announced: &[ServerAddress]) -> bool {
    let ensemble = &shared.ensemble;
    let reached = join_all(announced.iter().map(|server| ensemble.accepts(server, LIMIT))).await;
    if !reached.contains(&true) {
        return false;
    }
    let known = ensemble.servers.borrow().clone();
    // A known server that is down for a moment stays in the list.
    let is_kept = |(server, reached): &(&ServerAddress, bool)| *reached || known.contains(server);
    let kept = announced.iter().zip(reached).filter(is_kept);
    let servers: Vec<_> = kept.map(|(server, _)| server.clone()).collect();
    let is_same = servers.len() == known.len() && servers.iter().all(|server| known.contains(server));
    if !is_same {
        let names: Vec<_> = servers.iter().map(ToString::to_string).collect();
        // Event: The ensemble was reconfigured. The field `servers` has the servers that the client connects
        // to from now on. If the connected server is not among them, the session moves to another server.
        tracing::info!(target: "docent::client", client = %shared.label, servers = names.join(","), "the ensemble has other servers; list of servers updated");
        ensemble.servers.send_replace(servers.clone());
    }
    servers.len() == announced.len()
}

/// Parses the data of `/zookeeper/config`. Returns `None` if it names no version or no server for clients.
fn parse(config: &str) -> Option<Announced> {
    let mut announced = Announced::default();
    let mut version = None;
    for line in config.lines() {
        let Some((name, value)) = line.trim().split_once('=') else { continue };
        match name {
            "version" => version = u64::from_str_radix(value, 16).ok(),
            _ if name.starts_with("server.") => announced.servers.extend(client_address(value)),
            _ => {}
        }
    }
    announced.version = version?;
    (!announced.servers.is_empty()).then_some(announced)
}

/// Returns the address for clients in `host:port:port[:role];[address:]port`. If the server listens on all of
/// its addresses, clients use its host. Of several hosts, separated by '|', the first counts.
fn client_address(server: &str) -> Option<ServerAddress> {
    let (peer, client) = server.split_once(';')?;
    let (address, port) = match client.rsplit_once(':') {
        Some((address, port)) => (Some(address), port),
        None => (None, client),
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let address = address.map(unbracketed).filter(|address| !address.is_empty() && !is_wildcard(address));
    let peer = peer.split('|').next().unwrap_or_default();
    let host = match address {
        Some(address) => address,
        None => match peer.strip_prefix('[') {
            Some(peer) => peer.split_once(']')?.0,
            None => peer.split_once(':')?.0,
        },
    };
    (!host.is_empty()).then(|| ServerAddress { host: host.to_owned(), port })
}

fn unbracketed(address: &str) -> &str {
    address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address)
}

fn is_wildcard(address: &str) -> bool {
    address.parse().is_ok_and(|address: IpAddr| address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_for_clients_is_never_a_wildcard() {
        for (server, address) in [
            ("zk1:2888:3888:participant;0.0.0.0:2181", Some("zk1:2181")),
            ("zk1:2888:3888:participant;10.0.0.1:2182", Some("10.0.0.1:2182")),
            ("zk1:2888:3888;2181", Some("zk1:2181")),
            ("zk1:2888:3888|zk1b:2888:3888:observer;[::]:2181", Some("zk1:2181")),
            ("[fd00::1]:2888:3888:participant;[0:0:0:0:0:0:0:0]:2181", Some("[fd00::1]:2181")),
            ("zk1:2888:3888:participant;[fd00::2]:2181", Some("[fd00::2]:2181")),
            ("zk1:2888:3888:participant", None),
            ("zk1:2888:3888:participant;", None),
            ("zk1:2888:3888:participant;0.0.0.0:0", None),
            (":2888:3888;2181", None),
        ] {
            let parsed = client_address(server).map(|server| server.to_string());
            assert_eq!(parsed.as_deref(), address, "{server}");
        }
    }

    #[test]
    fn a_configuration_without_version_or_servers_is_ignored() {
        let config = "server.1=zk1:1:2:participant;2181\nserver.2=zk2:1:2:observer;2181\nversion=10000000f";
        let announced = parse(config).unwrap();
        assert_eq!((announced.version, announced.servers.len()), (0x1_0000_000f, 2));
        for config in ["", "version=1", "server.1=zk1:1:2;2181", "server.1=zk1:1:2\nversion=0", "version=x"] {
            assert_eq!(parse(config), None, "{config}");
        }
    }
}
