//! Caches of children while links and sessions are lost and restored.

use crate::children_cache::{Observer, folder, shown};
use crate::{PERSISTENT, builder, connect};
use bytes::BytesMut;
use docent::cache::ChildrenCache;
use docent::{Client, CreateMode};
use docent_battery::{Backend, Direction, Proxy, Rule, TestServer, both_backends};
use docent_proto::{Code, OpCode, Request, Response, Stat};
use docent_tests::fake::{FakeServer, reply};
use docent_tests::{PATIENCE, soon};

/// Returns a client behind a proxy with a cache of `/f`, loaded with the children `names`. Also returns the
/// proxy, a second client, and the cache's subscriber.
async fn loaded(server: &TestServer, names: &[&str]) -> (Client, Proxy, Client, ChildrenCache, Observer) {
    let (other, proxy) = (connect(server).await, server.proxy().await);
    folder(&other, names).await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    let mut observer = Observer::by(&cache);
    observer.until_next("ready").await;
    (other, proxy, client, cache, observer)
}

/// Changes the children `a`, `b`, `c` and `d` of the folder, each in a different way.
async fn change_all(other: &Client) {
    other.set("/f/a", "new", None).await.unwrap();
    other.delete("/f/b", None).await.unwrap();
    other
        .transaction()
        .delete("/f/c", None)
        .create("/f/c", "c", CreateMode::Persistent)
        .commit()
        .await
        .unwrap();
    other.create("/f/e", "e", CreateMode::Persistent).await.unwrap();
    // A subscriber that missed this child need not learn of it.
    other.create("/f/x", "", CreateMode::Persistent).await.unwrap();
    other.delete("/f/x", None).await.unwrap();
}

/// Checks that the subscriber received exactly these changes up to the next `ready`.
async fn all_changes(observer: &mut Observer) {
    observer.until_next("ready").await;
    let changes: Vec<_> =
        observer.log.iter().filter(|entry| !matches!(&***entry, "gap" | "ready")).cloned().collect();
    let mut sorted = changes.clone();
    sorted.sort();
    assert_eq!(sorted, ["apply a", "apply c", "apply e", "delete b"], "{:?}", observer.log);
    observer.until_children(&[("a", "new"), ("c", "c"), ("d", "d"), ("e", "e")]).await;
}

both_backends! {
    async fn changes_made_while_the_link_was_down_are_reported_and_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, client, cache, mut observer) = loaded(&server, &["a", "b", "c", "d"]).await;
        let session = client.session_id();
        let before = cache.current();
        proxy.cut().await;
        observer.until_next("gap").await;
        assert!(cache.is_stale());
        assert_eq!(cache.current().len(), 4, "known children are still shown");
        change_all(&other).await;
        proxy.heal().await.unwrap();
        all_changes(&mut observer).await;
        assert!(!cache.is_stale());
        assert!(cache.current().get("c").unwrap().stat.czxid > before.get("c").unwrap().stat.czxid);
        assert_eq!(client.session_id(), session);
        // All children are still watched.
        for name in ["a", "c", "d", "e"] {
            other.set(&format!("/f/{name}"), "last", None).await.unwrap();
        }
        observer.until_children(&[("a", "last"), ("c", "last"), ("d", "last"), ("e", "last")]).await;
    }

    async fn changes_made_before_a_new_session_are_reported_and_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, client, cache, mut observer) = loaded(&server, &["a", "b", "c", "d"]).await;
        let session = client.session_id().unwrap();
        proxy.cut().await;
        change_all(&other).await;
        server.expire(session).await.unwrap();
        proxy.heal().await.unwrap();
        all_changes(&mut observer).await;
        assert_ne!(client.session_id(), Some(session));
        assert_eq!(shown(&cache), observer.children);
        for name in ["a", "c", "d", "e"] {
            other.set(&format!("/f/{name}"), "last", None).await.unwrap();
        }
        observer.until_children(&[("a", "last"), ("c", "last"), ("d", "last"), ("e", "last")]).await;
        if let Some(embedded) = server.as_embedded() {
            let expected = if PERSISTENT { 2 } else { 1 + 4 };
            soon(async { while embedded.watch_count() != expected { client.sync("/").await.unwrap(); } }).await;
        }
    }

    async fn a_folder_deleted_or_created_while_the_link_was_down_is_reported(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, _client, cache, mut observer) = loaded(&server, &["a", "b"]).await;
        proxy.cut().await;
        other.transaction().delete("/f/a", None).delete("/f/b", None).delete("/f", None).commit().await.unwrap();
        proxy.heal().await.unwrap();
        observer.until_children(&[]).await;
        observer.until_next("ready").await;
        assert!(cache.current().folder().is_none());
        proxy.cut().await;
        folder(&other, ["a", "c"]).await;
        proxy.heal().await.unwrap();
        observer.until_children(&[("a", "a"), ("c", "c")]).await;
        // Another folder with the same names.
        proxy.cut().await;
        other.transaction().delete("/f/a", None).delete("/f/c", None).delete("/f", None).commit().await.unwrap();
        folder(&other, ["a", "d"]).await;
        proxy.heal().await.unwrap();
        observer.until_children(&[("a", "a"), ("d", "d")]).await;
        let zxid = other.exists("/f/a").await.unwrap().unwrap().czxid;
        soon(async { while cache.current().get("a").unwrap().stat.czxid != zxid { observer.next().await.unwrap().unwrap(); } }).await;
    }

    async fn lost_replies_cost_nothing_but_time(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let names: Vec<_> = (0..150).map(|n| format!("{n:03}")).collect();
        for op in [OpCode::GetChildren2, OpCode::MultiRead, OpCode::GetData, OpCode::Exists] {
            for lost in [Rule::on(op).reset_before(), Rule::on(op).reset_after(), Rule::on(op).nth(2).reset_after()] {
                proxy.add(lost);
            }
            let cache = ChildrenCache::new(&client, "/f").unwrap();
            soon(cache.ready()).await.unwrap();
            if cache.current().folder().is_none() {
                folder(&other, &names).await;
            }
            let mut observer = Observer::by(&cache);
            observer.until(|observer| observer.children.len() == 150).await;
            other.set("/f/000", format!("{op:?}"), None).await.unwrap();
            observer.until(|observer| observer.children["000"] == format!("{op:?}")).await;
            assert_eq!(shown(&cache), observer.children);
        }
    }

    async fn a_child_deleted_during_the_load_does_not_block_the_others(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let names: Vec<_> = (0..100).map(|n| format!("{n:03}")).collect();
        folder(&other, &names).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let held = proxy.add(Rule::on(OpCode::MultiRead).hold());
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(held.fired()).await;
        for name in names.iter().step_by(2) {
            other.delete(&format!("/f/{name}"), None).await.unwrap();
        }
        proxy.heal().await.unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        assert!(observer.log[0] == "init" && !observer.log.iter().any(|entry| entry.starts_with("unreadable")));
        let left: Vec<_> = names.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(observer.children.into_keys().collect::<Vec<_>>(), left);
    }

    async fn unstable_links_end_in_the_right_children(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, _client, cache, mut observer) = loaded(&server, &["a", "b"]).await;
        for n in 0..5 {
            proxy.reset().await;
            other.set("/f/a", n.to_string(), None).await.unwrap();
            other.create(&format!("/f/n{n}"), "", CreateMode::Persistent).await.unwrap();
        }
        observer.until(|observer| observer.children.len() == 7 && observer.children["a"] == "4").await;
        if cache.is_stale() {
            observer.until_next("ready").await;
        }
        let lists = proxy.trace().iter().filter(|frame| frame.direction == Direction::ToServer && frame.op == Some(OpCode::GetChildren2)).count();
        assert!(lists <= 30, "{lists} listings for five lost links");
        assert_eq!(shown(&cache), observer.children);
    }
}

fn body(response: &Response) -> Vec<u8> {
    let mut out = BytesMut::new();
    response.write(&mut out);
    out.to_vec()
}

/// A server before 3.6 does not support reads of several nodes. It returns an error and closes the link.
#[tokio::test(start_paused = true)]
async fn servers_without_multi_reads_are_asked_one_by_one() {
    const CHILDREN: usize = 200;
    let server = FakeServer::start().await;
    let client = server.client_builder().operation_timeout(PATIENCE).build().unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    let serve = async {
        let mut refused = 0;
        loop {
            let mut link = server.attached(6_000).await;
            while let Ok(request) = link.request().await {
                let answer = match &request.request {
                    Request::GetChildren2 { .. } => {
                        let names = (0..CHILDREN).map(|n| n.to_string()).collect();
                        Response::Children { names, stat: Some(Stat::default()) }
                    }
                    Request::GetData { path, .. } => {
                        Response::Data { data: Some(path.clone().into()), stat: Stat::default() }
                    }
                    Request::MultiRead(_) => {
                        refused += 1;
                        assert_eq!(refused, 1, "MultiRead was sent again");
                        link.send(&reply(request.xid, 1, Code::UNIMPLEMENTED.0, &[])).await;
                        break;
                    }
                    _ => Response::Empty,
                };
                link.send(&reply(request.xid, 1, 0, &body(&answer))).await;
            }
            link.end().await;
        }
    };
    tokio::select! {
        () = serve => {}
        ready = soon(cache.ready()) => ready.unwrap(),
    }
    assert_eq!(cache.current().len(), CHILDREN);
    assert_eq!(&*cache.current().get("7").unwrap().data, b"/f/7");
}
