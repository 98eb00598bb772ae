//! Servers without persistent watches, and ensembles in which some servers have them.

use crate::builder;
use crate::children_cache::{Observer, folder, shown};
use docent::cache::{ChildrenCache, TreeCache};
use docent::server::Dialect;
use docent::{Client, ConnectionState, CreateMode};
use docent_battery::{Backend, Proxy};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, connect, soon};
use futures_util::StreamExt;

/// Returns the number of requests for persistent watches in a proxy's trace.
fn asked(proxy: &Proxy) -> usize {
    let trace = proxy.trace();
    let asks = [OpCode::AddWatch, OpCode::SetWatches2];
    trace.iter().filter(|frame| asks.iter().any(|op| frame.is_request(*op))).count()
}

/// Returns the number of links through a proxy.
fn links(proxy: &Proxy) -> u64 {
    proxy.trace().iter().map(|frame| frame.link + 1).max().unwrap_or(0)
}

/// Changes the folder in every way, and waits until the cache shows the changes.
async fn follows(other: &Client, observer: &mut Observer, cache: &ChildrenCache) {
    other.create("/f/new", "1", CreateMode::Persistent).await.unwrap();
    observer.until(|observer| observer.children.get("new").is_some_and(|data| data == "1")).await;
    other.set("/f/new", "2", None).await.unwrap();
    observer.until(|observer| observer.children.get("new").is_some_and(|data| data == "2")).await;
    other.delete("/f/new", None).await.unwrap();
    observer.until(|observer| !observer.children.contains_key("new")).await;
    assert_eq!(shown(cache), observer.children);
}

/// Breaks the client's link, changes the folder while the link is down, and waits until the change is shown.
async fn over_a_gap(other: &Client, proxy: &Proxy, observer: &mut Observer, data: &str) {
    proxy.cut().await;
    other.set("/f/a", data.to_owned(), None).await.unwrap();
    other.create(&format!("/f/{data}"), data.to_owned(), CreateMode::Persistent).await.unwrap();
    proxy.heal().await.unwrap();
    observer.until(|observer| observer.children.contains_key(data) && observer.children["a"] == data).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_persistent_watches_is_asked_once_and_followed_by_one_shot_watches() {
    let server = Backend::Memory.start().await;
    server.as_embedded().unwrap().set_dialect(Dialect::ZooKeeper35);
    let (other, proxy) = (connect(&server).await, server.proxy().await);
    folder(&other, ["a", "b"]).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let (cache, tree) = (ChildrenCache::new(&client, "/f").unwrap(), TreeCache::new(&client, "/f").unwrap());
    let mut observer = Observer::by(&cache);
    observer.until_next("ready").await;
    soon(tree.ready()).await.unwrap();
    assert!(!client.health().persistent_watches);
    follows(&other, &mut observer, &cache).await;
    for gap in ["g1", "g2", "g3"] {
        over_a_gap(&other, &proxy, &mut observer, gap).await;
        follows(&other, &mut observer, &cache).await;
    }
    let mut events = tree.changes();
    soon(async {
        while tree.current().len() != 6 {
            events.next().await;
        }
    })
    .await;
    // The reply may be lost when the server closes the link. The cache then sends one more request.
    assert!(
        asked(&proxy) <= 4,
        "each of the two caches sends a request on at most two links: {}",
        asked(&proxy)
    );
    assert!(
        links(&proxy) <= 6,
        "one link for each gap, and at most two that the server closed: {}",
        links(&proxy)
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_asked_forever() {
    let server = Backend::Memory.start().await;
    let (other, proxy) = (connect(&server).await, server.proxy().await);
    folder(&other, ["a"]).await;
    for op in [OpCode::AddWatch, OpCode::SetWatches2] {
        for _ in 0..20 {
            proxy.add(docent_battery::Rule::on(op).reset_before());
        }
    }
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    let mut observer = Observer::by(&cache);
    observer.until_next("ready").await;
    follows(&other, &mut observer, &cache).await;
    assert!(!client.health().persistent_watches);
    assert_eq!(asked(&proxy), 2, "each of the two links carried one request");
}

/// Moves the client's link to the server behind `to`.
async fn moves(client: &Client, from: &Proxy, to: &Proxy) {
    let mut state = client.state();
    to.heal().await.unwrap();
    from.cut().await;
    soon(state.reached(ConnectionState::Connected)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn in_an_ensemble_that_is_being_upgraded_each_link_has_what_its_server_has() {
    let server = Backend::Memory.start().await;
    let old = server.follower(|follower| follower).await;
    old.set_dialect(Dialect::ZooKeeper35);
    let other = connect(&server).await;
    folder(&other, ["a", "b"]).await;
    let (new, aged) = (server.proxy().await, server.proxy_of(old.local_addr()).await);
    aged.cut().await;
    let both = format!("{},{}", new.connect_string(), aged.connect_string());
    let client = builder(&server, both).connect().await.unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    let mut observer = Observer::by(&cache);
    observer.until_next("ready").await;
    assert!(client.health().persistent_watches);
    follows(&other, &mut observer, &cache).await;
    for round in 0..3 {
        moves(&client, &new, &aged).await;
        other.set("/f/a", format!("{round}"), None).await.unwrap();
        observer.until(|observer| observer.children["a"] == round.to_string()).await;
        follows(&other, &mut observer, &cache).await;
        assert!(!client.health().persistent_watches, "the old server has no persistent watches");
        moves(&client, &aged, &new).await;
        other.set("/f/b", format!("{round}"), None).await.unwrap();
        observer.until(|observer| observer.children["b"] == round.to_string()).await;
        follows(&other, &mut observer, &cache).await;
        let sent = || new.trace().iter().filter_map(|frame| frame.op).collect::<Vec<_>>();
        let regained = async {
            while !client.health().persistent_watches {
                docent_tests::pause().await;
            }
        };
        let regained = tokio::time::timeout(PATIENCE, regained).await;
        assert!(regained.is_ok(), "round {round}: {:?}", sent());
    }
    assert!(asked(&aged) <= 2, "the server refused them: {}", asked(&aged));
    assert_eq!(client.state().current().generation, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_downgraded_under_a_link_is_followed_by_one_shot_watches_without_a_gap() {
    let server = Backend::Memory.start().await;
    let (other, proxy) = (connect(&server).await, server.proxy().await);
    folder(&other, ["a"]).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let cache = TreeCache::new(&client, "/f").unwrap();
    soon(cache.ready()).await.unwrap();
    let mut events = cache.changes();
    assert!(client.health().persistent_watches);
    server.as_embedded().unwrap().set_dialect(Dialect::ZooKeeper35);
    proxy.cut().await;
    other.create("/f/a/b", "1", CreateMode::Persistent).await.unwrap();
    other.create("/f/c", "1", CreateMode::Persistent).await.unwrap();
    proxy.heal().await.unwrap();
    let shows = |path: &str| cache.current().get(path).is_some();
    soon(async {
        while !(shows("/f/a/b") && shows("/f/c")) {
            events.next().await;
        }
    })
    .await;
    for path in ["/f/d", "/f/d/e", "/f/a/b/c"] {
        other.create(path, "1", CreateMode::Persistent).await.unwrap();
        soon(async {
            while !shows(path) {
                events.next().await;
            }
        })
        .await;
    }
    other.delete_all("/f/d").await.unwrap();
    soon(async {
        while shows("/f/d") {
            events.next().await;
        }
    })
    .await;
    assert!(!client.health().persistent_watches);
    assert!(
        asked(&proxy) <= 3,
        "one request on the server with persistent watches, and at most two without: {}",
        asked(&proxy)
    );
}
