//! Servers without persistent watches, and ensembles in which some have them.

use crate::builder;
use crate::children_cache::{Told, folder, shown};
use docent::cache::{ChildrenCache, TreeCache};
use docent::{Client, ConnectionState, CreateMode};
use docent_battery::{Backend, Proxy};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, connect, soon};
use futures_util::StreamExt;

/// Requests for persistent watches that went through a proxy.
fn asked(proxy: &Proxy) -> usize {
    let trace = proxy.trace();
    let asks = [OpCode::AddWatch, OpCode::SetWatches2];
    trace.iter().filter(|frame| asks.iter().any(|op| frame.is_request(*op))).count()
}

/// Links that were made through a proxy.
fn links(proxy: &Proxy) -> u64 {
    proxy.trace().iter().map(|frame| frame.link + 1).max().unwrap_or(0)
}

/// Changes the folder in all ways, and waits until the cache shows it.
async fn follows(other: &Client, told: &mut Told, cache: &ChildrenCache) {
    other.create("/f/new", "1", CreateMode::Persistent).await.unwrap();
    told.until(|told| told.children.get("new").is_some_and(|data| data == "1")).await;
    other.set("/f/new", "2", None).await.unwrap();
    told.until(|told| told.children.get("new").is_some_and(|data| data == "2")).await;
    other.delete("/f/new", None).await.unwrap();
    told.until(|told| !told.children.contains_key("new")).await;
    assert_eq!(shown(cache), told.children);
}

/// Breaks the client's link, changes the folder while there is none, and waits until it is shown.
async fn over_a_gap(other: &Client, proxy: &Proxy, told: &mut Told, data: &str) {
    proxy.cut().await;
    other.set("/f/a", data.to_owned(), None).await.unwrap();
    other.create(&format!("/f/{data}"), data.to_owned(), CreateMode::Persistent).await.unwrap();
    proxy.heal().await.unwrap();
    told.until(|told| told.children.contains_key(data) && told.children["a"] == data).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_them_is_asked_once_and_followed_by_one_shot_watches() {
    let server = Backend::Memory.start().await;
    server.as_embedded().unwrap().set_3_5(true);
    let (other, proxy) = (connect(&server).await, server.proxy().await);
    folder(&other, ["a", "b"]).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let (cache, tree) = (ChildrenCache::new(&client, "/f").unwrap(), TreeCache::new(&client, "/f").unwrap());
    let mut told = Told::by(&cache);
    told.until_next("ready").await;
    soon(tree.ready()).await.unwrap();
    assert!(!client.health().persistent_watches);
    follows(&other, &mut told, &cache).await;
    for gap in ["g1", "g2", "g3"] {
        over_a_gap(&other, &proxy, &mut told, gap).await;
        follows(&other, &mut told, &cache).await;
    }
    let mut events = tree.changes();
    soon(async {
        while tree.current().len() != 6 {
            events.next().await;
        }
    })
    .await;
    // The answer may be lost with the link that the server closes: then it is asked by one more.
    assert!(asked(&proxy) <= 4, "each of the two caches asks by at most two links: {}", asked(&proxy));
    assert!(
        links(&proxy) <= 6,
        "one for each gap, and at most two that the server closed: {}",
        links(&proxy)
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_when_it_is_asked_is_not_asked_for_ever() {
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
    let mut told = Told::by(&cache);
    told.until_next("ready").await;
    follows(&other, &mut told, &cache).await;
    assert!(!client.health().persistent_watches);
    assert_eq!(asked(&proxy), 2, "once by each of two links");
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
    old.set_3_5(true);
    let other = connect(&server).await;
    folder(&other, ["a", "b"]).await;
    let (new, aged) = (server.proxy().await, server.proxy_of(old.local_addr()).await);
    aged.cut().await;
    let both = format!("{},{}", new.connect_string(), aged.connect_string());
    let client = builder(&server, both).connect().await.unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    let mut told = Told::by(&cache);
    told.until_next("ready").await;
    assert!(client.health().persistent_watches);
    follows(&other, &mut told, &cache).await;
    for round in 0..3 {
        moves(&client, &new, &aged).await;
        other.set("/f/a", format!("{round}"), None).await.unwrap();
        told.until(|told| told.children["a"] == round.to_string()).await;
        follows(&other, &mut told, &cache).await;
        assert!(!client.health().persistent_watches, "the old server has none");
        moves(&client, &aged, &new).await;
        other.set("/f/b", format!("{round}"), None).await.unwrap();
        told.until(|told| told.children["b"] == round.to_string()).await;
        follows(&other, &mut told, &cache).await;
        let sent = || new.trace().iter().filter_map(|frame| frame.op).collect::<Vec<_>>();
        let regained = async {
            while !client.health().persistent_watches {
                docent_tests::pause().await;
            }
        };
        let regained = tokio::time::timeout(PATIENCE, regained).await;
        assert!(regained.is_ok(), "round {round}: {:?}", sent());
    }
    assert!(asked(&aged) <= 2, "it said so: {}", asked(&aged));
    assert_eq!(client.state().current().generation, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_downgraded_under_a_link_is_left_to_one_shot_watches_without_a_gap() {
    let server = Backend::Memory.start().await;
    let (other, proxy) = (connect(&server).await, server.proxy().await);
    folder(&other, ["a"]).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let cache = TreeCache::new(&client, "/f").unwrap();
    soon(cache.ready()).await.unwrap();
    let mut events = cache.changes();
    assert!(client.health().persistent_watches);
    server.as_embedded().unwrap().set_3_5(true);
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
    assert!(asked(&proxy) <= 3, "when it had them, and when it had not: {}", asked(&proxy));
}
