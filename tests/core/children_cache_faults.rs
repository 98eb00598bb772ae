//! Caches of children while links and sessions come and go.

use crate::children_cache::{Told, folder, shown};
use crate::{PERSISTENT, builder, connect};
use bytes::BytesMut;
use docent::cache::ChildrenCache;
use docent::{Client, CreateMode};
use docent_battery::{Backend, Direction, Proxy, Rule, TestServer, both_backends};
use docent_proto::{Code, OpCode, Request, Response, Stat};
use docent_tests::fake::{FakeServer, reply};
use docent_tests::{PATIENCE, soon};

/// A cache of `/f` whose link goes through a proxy, loaded with the children `names`; somebody else; its
/// subscriber.
async fn loaded(server: &TestServer, names: &[&str]) -> (Client, Proxy, Client, ChildrenCache, Told) {
    let (other, proxy) = (connect(server).await, server.proxy().await);
    folder(&other, names).await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    let mut told = Told::by(&cache);
    told.until_next("ready").await;
    (other, proxy, client, cache, told)
}

/// Changes every child of the folder with `a`, `b`, `c` and `d`, each in another way.
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
    // Nobody who was not there need ever know.
    other.create("/f/x", "", CreateMode::Persistent).await.unwrap();
    other.delete("/f/x", None).await.unwrap();
}

/// That `told` was told of exactly these changes, and of no others, up to the next `ready`.
async fn all_changes(told: &mut Told) {
    told.until_next("ready").await;
    let changes: Vec<_> =
        told.log.iter().filter(|word| !matches!(&***word, "gap" | "ready")).cloned().collect();
    let mut sorted = changes.clone();
    sorted.sort();
    assert_eq!(sorted, ["apply a", "apply c", "apply e", "delete b"], "{:?}", told.log);
    told.until_children(&[("a", "new"), ("c", "c"), ("d", "d"), ("e", "e")]).await;
}

both_backends! {
    async fn what_changed_while_the_link_was_down_is_told_and_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, client, cache, mut told) = loaded(&server, &["a", "b", "c", "d"]).await;
        let session = client.session_id();
        let before = cache.current();
        proxy.cut().await;
        told.until_next("gap").await;
        assert!(cache.is_stale());
        assert_eq!(cache.current().len(), 4, "what was known is still shown");
        change_all(&other).await;
        proxy.heal().await.unwrap();
        all_changes(&mut told).await;
        assert!(!cache.is_stale());
        assert!(cache.current().get("c").unwrap().stat.czxid > before.get("c").unwrap().stat.czxid);
        assert_eq!(client.session_id(), session);
        // All are watched still.
        for name in ["a", "c", "d", "e"] {
            other.set(&format!("/f/{name}"), "last", None).await.unwrap();
        }
        told.until_children(&[("a", "last"), ("c", "last"), ("d", "last"), ("e", "last")]).await;
    }

    async fn what_changed_before_a_new_session_is_told_and_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, client, cache, mut told) = loaded(&server, &["a", "b", "c", "d"]).await;
        let session = client.session_id().unwrap();
        proxy.cut().await;
        change_all(&other).await;
        server.expire(session).await.unwrap();
        proxy.heal().await.unwrap();
        all_changes(&mut told).await;
        assert_ne!(client.session_id(), Some(session));
        assert_eq!(shown(&cache), told.children);
        for name in ["a", "c", "d", "e"] {
            other.set(&format!("/f/{name}"), "last", None).await.unwrap();
        }
        told.until_children(&[("a", "last"), ("c", "last"), ("d", "last"), ("e", "last")]).await;
        if let Some(embedded) = server.as_embedded() {
            let expected = if PERSISTENT { 2 } else { 1 + 4 };
            soon(async { while embedded.watch_count() != expected { client.sync("/").await.unwrap(); } }).await;
        }
    }

    async fn a_folder_that_went_or_came_while_the_link_was_down_is_told(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, _client, cache, mut told) = loaded(&server, &["a", "b"]).await;
        proxy.cut().await;
        other.transaction().delete("/f/a", None).delete("/f/b", None).delete("/f", None).commit().await.unwrap();
        proxy.heal().await.unwrap();
        told.until_children(&[]).await;
        told.until_next("ready").await;
        assert!(cache.current().folder().is_none());
        proxy.cut().await;
        folder(&other, ["a", "c"]).await;
        proxy.heal().await.unwrap();
        told.until_children(&[("a", "a"), ("c", "c")]).await;
        // Another folder with the same names.
        proxy.cut().await;
        other.transaction().delete("/f/a", None).delete("/f/c", None).delete("/f", None).commit().await.unwrap();
        folder(&other, ["a", "d"]).await;
        proxy.heal().await.unwrap();
        told.until_children(&[("a", "a"), ("d", "d")]).await;
        let zxid = other.exists("/f/a").await.unwrap().unwrap().czxid;
        soon(async { while cache.current().get("a").unwrap().stat.czxid != zxid { told.next().await.unwrap().unwrap(); } }).await;
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
            let mut told = Told::by(&cache);
            told.until(|told| told.children.len() == 150).await;
            other.set("/f/000", format!("{op:?}"), None).await.unwrap();
            told.until(|told| told.children["000"] == format!("{op:?}")).await;
            assert_eq!(shown(&cache), told.children);
        }
    }

    async fn a_child_deleted_while_it_is_loaded_does_not_hold_the_others_up(backend: Backend) {
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
        let mut told = Told::by(&cache);
        told.until_next("ready").await;
        assert!(told.log[0] == "init" && !told.log.iter().any(|word| word.starts_with("unreadable")));
        let left: Vec<_> = names.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(told.children.into_keys().collect::<Vec<_>>(), left);
    }

    async fn links_that_come_and_go_end_in_the_right_children(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy, _client, cache, mut told) = loaded(&server, &["a", "b"]).await;
        for n in 0..5 {
            proxy.reset().await;
            other.set("/f/a", n.to_string(), None).await.unwrap();
            other.create(&format!("/f/n{n}"), "", CreateMode::Persistent).await.unwrap();
        }
        told.until(|told| told.children.len() == 7 && told.children["a"] == "4").await;
        if cache.is_stale() {
            told.until_next("ready").await;
        }
        let lists = proxy.trace().iter().filter(|frame| frame.direction == Direction::ToServer && frame.op == Some(OpCode::GetChildren2)).count();
        assert!(lists <= 30, "{lists} listings for five lost links");
        assert_eq!(shown(&cache), told.children);
    }
}

fn body(response: &Response) -> Vec<u8> {
    let mut out = BytesMut::new();
    response.write(&mut out);
    out.to_vec()
}

/// A server before 3.6 does not know reads of several nodes, says so and closes the link.
#[tokio::test(start_paused = true)]
async fn servers_that_know_no_reads_of_several_nodes_are_asked_one_by_one() {
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
                        assert_eq!(refused, 1, "it is not tried again");
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
