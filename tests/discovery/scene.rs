//! Helpers shared by the tests of this suite.

use crate::builder;
use docent::discovery::{ServiceChange, ServiceChanges};
use docent::{Client, Error, Instance, Registry, Service};
use docent_battery::TestServer;
use docent_tests::soon;
use futures_util::StreamExt;
use std::time::Duration;

pub(crate) const BASE: &str = "/services";
pub(crate) const ORDERS: &str = "/services/orders";

pub(crate) fn registry(client: &Client) -> Registry {
    Registry::new(client, BASE).unwrap()
}

/// Returns an instance of the service `orders` with its id as payload.
pub(crate) fn orders(id: &str) -> Instance<String> {
    Instance::new("orders", "10.0.0.7", 8080).id(id).payload(id.to_owned())
}

/// Opens a view of the service `orders`.
pub(crate) async fn view(client: &Client) -> Service<String> {
    soon(registry(client).typed_service("orders")).await.unwrap()
}

/// Opens a client with this session timeout behind its own proxy.
pub(crate) async fn behind_proxy(server: &TestServer, timeout: Duration) -> (Client, docent_battery::Proxy) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).session_timeout(timeout).connect().await.unwrap();
    (client, proxy)
}

/// Returns the ids of the available instances.
pub(crate) fn ids(view: &Service<String>) -> Vec<String> {
    view.instances().iter().map(|instance| instance.id.clone()).collect()
}

/// Waits until the view shows exactly these available instances.
pub(crate) async fn until_ids(view: &Service<String>, expected: &[&str]) {
    let mut changes = view.changes();
    soon(async {
        while ids(view) != expected {
            // The service may be temporarily impossible to list.
            let _ = changes.next().await.expect("the client is open");
        }
    })
    .await;
}

/// Returns the next change, abbreviated, skipping changes of the view's freshness.
pub(crate) async fn next(changes: &mut ServiceChanges<String>) -> String {
    loop {
        match soon(changes.next()).await {
            Some(Ok(ServiceChange::Stale | ServiceChange::Current)) => {}
            change => return word(change.as_ref()),
        }
    }
}

pub(crate) fn word(change: Option<&Result<ServiceChange<String>, Error>>) -> String {
    match change {
        Some(Ok(ServiceChange::Added(instance))) => format!("added {}", instance.id),
        Some(Ok(ServiceChange::Updated(instance))) => format!("updated {}", instance.id),
        Some(Ok(ServiceChange::Removed(instance))) => format!("removed {}", instance.id),
        Some(Ok(ServiceChange::Unreadable(unreadable))) => format!("unreadable {}", unreadable.id),
        Some(Ok(ServiceChange::Stale)) => "stale".to_owned(),
        Some(Ok(ServiceChange::Current)) => "current".to_owned(),
        Some(_) => "other".to_owned(),
        None => "end".to_owned(),
    }
}

/// Waits until the node at `path` belongs to the current session of `client`, and returns its data.
pub(crate) async fn until_owned(client: &Client, other: &Client, path: &str) -> String {
    soon(async {
        loop {
            if let Ok(node) = other.get(path).await
                && node.stat.owner.is_some()
                && node.stat.owner == client.session_id()
            {
                return String::from_utf8(node.data.to_vec()).unwrap();
            }
            docent_tests::pause().await;
        }
    })
    .await
}

/// Waits until no node exists at `path`.
pub(crate) async fn until_deleted(other: &Client, path: &str) {
    soon(async { while other.exists(path).await.unwrap().is_some() {} }).await;
}
