//! Clients, nodes and guards leave nothing behind when they end.

use crate::builder;
use docent::{Client, CreateMode, Mutex};
use docent_battery::Backend;
use docent_tests::soon;
use futures_util::{StreamExt, poll};

/// Everything that a client can leave at a server or in its process, as far as server and client count it.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    tasks: usize,
    watches: usize,
    nodes: Vec<String>,
    sessions: usize,
    links: usize,
    guards: usize,
}

fn count(server: &docent::server::Server, client: &Client) -> Counted {
    Counted {
        tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        watches: server.watch_count(),
        nodes: server.nodes(),
        sessions: server.session_count(),
        links: server.connection_count(),
        guards: client.health().guards,
    }
}

/// Uses one of each: a lock that is acquired and released, a second lock that is waited for and given up at
/// the n-th poll, and streams.
async fn round(client: &Client, n: usize) {
    soon(soon(Mutex::new(client, "/free").unwrap().acquire()).await.unwrap().release()).await.unwrap();
    let mut given_up = Box::pin(Mutex::new(client, "/taken").unwrap().acquire());
    for _ in 0..n % 8 {
        assert!(poll!(given_up.as_mut()).is_pending());
        docent_tests::pause().await;
    }
    drop(given_up);
    if n.is_multiple_of(16) {
        let mut data = client.watch_data("/a").unwrap();
        let mut children = client.watch_children("/a").unwrap();
        soon(data.next()).await.unwrap().unwrap();
        assert!(poll!(children.next()).is_pending());
        // Waits for pending cleanups, which a later request does not overtake.
        soon(client.sync("/")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn thousands_of_locks_given_up_waits_and_streams_leave_nothing() {
    const ROUNDS: usize = 2_000;
    let server = Backend::Memory.start().await;
    let embedded = server.as_embedded().unwrap();
    // Bypasses the proxies, which record every frame.
    let client = builder(&server, embedded.connect_string()).connect().await.unwrap();
    client.create("/a", "", CreateMode::Persistent).await.unwrap();
    // The servers would delete and the client re-create containers.
    for path in ["/free", "/taken"] {
        client.create(path, "", CreateMode::Persistent).await.unwrap();
    }
    let _taken = soon(Mutex::new(&client, "/taken").unwrap().acquire()).await.unwrap();
    // Waits for the holder's watch on its own node.
    soon(async {
        while embedded.watch_count() == 0 {
            client.sync("/").await.unwrap();
        }
    })
    .await;
    let before = count(embedded, &client);
    for n in 0..ROUNDS {
        round(&client, n).await;
    }
    soon(async {
        while count(embedded, &client) != before {
            client.sync("/").await.unwrap();
        }
    })
    .await;
}
