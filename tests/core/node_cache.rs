//! Caches of one node's data.

use crate::children_cache::all_but_read;
use crate::{both_backends, builder, connect};
use docent::cache::{NodeCache, NodeChanges};
use docent::node::Acl;
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, Rule};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::StreamExt;

async fn next(changes: &mut NodeChanges) -> Option<String> {
    let node = soon(changes.next()).await.expect("the client is open").expect("the node must be readable");
    node.map(|node| String::from_utf8(node.data.to_vec()).unwrap())
}

fn shown(cache: &NodeCache) -> Option<String> {
    cache.current().map(|node| String::from_utf8(node.data.to_vec()).unwrap())
}

async fn until_fresh(cache: &NodeCache) {
    soon(async {
        while cache.is_stale() {
            docent_tests::pause().await;
        }
    })
    .await;
}

both_backends! {
    async fn a_node_is_shown_from_before_its_creation_to_after_its_deletion(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let cache = NodeCache::new(&client, "/a").unwrap();
        assert!(cache.is_stale() && cache.stale_for().is_some());
        soon(cache.ready()).await.unwrap();
        assert!(!cache.is_stale() && cache.current().is_none());
        let mut changes = cache.changes();
        assert_eq!(next(&mut changes).await, None);
        for data in ["1", "2"] {
            other.create("/a", data, CreateMode::Persistent).await.unwrap();
            assert_eq!(next(&mut changes).await.as_deref(), Some(data));
            other.set("/a", "new", None).await.unwrap();
            assert_eq!(next(&mut changes).await.as_deref(), Some("new"));
            assert_eq!(shown(&cache).as_deref(), Some("new"));
            other.delete("/a", None).await.unwrap();
            assert_eq!(next(&mut changes).await, None);
        }
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
        // Another node with the same version and the same data.
        let before = cache.current().unwrap().stat;
        other.transaction().delete("/a", None).create("/a", "1", CreateMode::Persistent).commit().await.unwrap();
        assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
        assert!(cache.current().unwrap().stat.czxid > before.czxid);
        // A late subscriber receives the current value.
        assert_eq!(next(&mut cache.changes()).await.as_deref(), Some("1"));
    }

    async fn a_change_while_the_link_was_down_is_shown_and_the_old_value_is_stale(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let cache = NodeCache::new(&client, "/a").unwrap();
        soon(cache.ready()).await.unwrap();
        let mut changes = cache.changes();
        assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
        proxy.cut().await;
        soon(async { while !cache.is_stale() { docent_tests::pause().await; } }).await;
        assert_eq!(shown(&cache).as_deref(), Some("1"));
        other.set("/a", "2", None).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(next(&mut changes).await.as_deref(), Some("2"));
        until_fresh(&cache).await;
        // The cache becomes fresh again without a change, too.
        proxy.cut().await;
        soon(async { while !cache.is_stale() { docent_tests::pause().await; } }).await;
        proxy.heal().await.unwrap();
        until_fresh(&cache).await;
        other.set("/a", "3", None).await.unwrap();
        assert_eq!(next(&mut changes).await.as_deref(), Some("3"));
    }

    async fn a_change_before_a_new_session_is_shown(backend: Backend) {
        let server = backend.start().await;
        let (other, client) = (connect(&server).await, connect(&server).await);
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let (cache, missing) = (NodeCache::new(&client, "/a").unwrap(), NodeCache::new(&client, "/b").unwrap());
        let (mut changes, mut none) = (cache.changes(), missing.changes());
        assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
        assert_eq!(next(&mut none).await, None);
        server.expire(client.session_id().unwrap()).await.unwrap();
        other.set("/a", "2", None).await.unwrap();
        other.create("/b", "2", CreateMode::Persistent).await.unwrap();
        assert_eq!(next(&mut changes).await.as_deref(), Some("2"));
        assert_eq!(next(&mut none).await.as_deref(), Some("2"));
        other.delete("/a", None).await.unwrap();
        assert_eq!(next(&mut changes).await, None);
    }

    async fn lost_replies_cost_nothing_but_time(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for op in [OpCode::GetData, OpCode::Exists] {
            for lost in [Rule::on(op).reset_before(), Rule::on(op).reset_after()] {
                proxy.add(lost);
                let cache = NodeCache::new(&client, "/a").unwrap();
                let mut changes = cache.changes();
                assert_eq!(next(&mut changes).await, None);
                other.create("/a", "1", CreateMode::Persistent).await.unwrap();
                assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
                other.delete("/a", None).await.unwrap();
                assert_eq!(next(&mut changes).await, None);
            }
        }
    }

    async fn a_node_that_may_not_be_read_is_reported_and_retried(backend: Backend) {
        let server = backend.start().await;
        let (other, client) = (connect(&server).await, connect(&server).await);
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        other.set_acl("/a", [all_but_read()], None).await.unwrap();
        let cache = NodeCache::new(&client, "/a").unwrap();
        let error = soon(cache.ready()).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some("/a")));
        assert!(cache.last_error().is_some() && cache.is_stale());
        let mut changes = cache.changes();
        assert_eq!(soon(changes.next()).await.unwrap().unwrap_err().kind(), ErrorKind::NoAuth);
        other.set_acl("/a", [Acl::open_unsafe()], None).await.unwrap();
        assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
        until_fresh(&cache).await;
        assert!(cache.last_error().is_none());
    }

    async fn a_slow_reader_gets_the_last_value(backend: Backend) {
        let server = backend.start().await;
        let (other, client) = (connect(&server).await, connect(&server).await);
        other.create("/a", "0", CreateMode::Persistent).await.unwrap();
        let cache = NodeCache::new(&client, "/a").unwrap();
        let (mut slow, mut quick) = (cache.changes(), cache.changes());
        for n in 1..=500 {
            other.set("/a", n.to_string(), None).await.unwrap();
        }
        while next(&mut quick).await.as_deref() != Some("500") {}
        assert_eq!(next(&mut slow).await.as_deref(), Some("500"));
    }

    async fn caches_share_a_watch_leave_none_and_end_on_close(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let caches = [(); 3].map(|()| NodeCache::new(&client, "/a").unwrap());
        for cache in &caches {
            soon(cache.ready()).await.unwrap();
        }
        if let Some(embedded) = server.as_embedded() {
            assert_eq!(embedded.watch_count(), 1);
        }
        for n in 0..1_000 {
            let cache = NodeCache::new(&client, "/a").unwrap();
            match n % 3 {
                0 => {}
                1 => tokio::task::yield_now().await,
                _ => soon(cache.ready()).await.unwrap(),
            }
        }
        drop(caches);
        if let Some(embedded) = server.as_embedded() {
            soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
        }
        client.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let cache = NodeCache::new(&client, "/a").unwrap();
        let mut changes = cache.changes();
        assert_eq!(next(&mut changes).await.as_deref(), Some("1"));
        soon(client.close()).await;
        assert!(soon(changes.next()).await.is_none());
        assert_eq!(shown(&cache).as_deref(), Some("1"));
        assert!(cache.is_stale());
        assert_eq!(soon(cache.ready()).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(NodeCache::new(&client, "/a").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(NodeCache::new(&client, "a").unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
