//! One-shot watches of children that were read in batches.

use crate::children_cache::{Observer, folder, shown};
use crate::{builder, connect};
use docent::Client;
use docent::cache::ChildrenCache;
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

/// Creates a folder of a hundred children, too many for single reads, and a cache of it. The cache's request
/// for the watches that reads did not set is held. Returns the names, the cache's client, a second client,
/// the proxy and the cache.
async fn unarmed(server: &TestServer) -> (Vec<String>, [Client; 2], Proxy, ChildrenCache) {
    let (other, proxy) = (connect(server).await, server.proxy().await);
    let names: Vec<_> = (0..100).map(|n| format!("{n:03}")).collect();
    folder(&other, &names).await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    let held = proxy.add(Rule::on(OpCode::SetWatches).hold());
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    soon(held.fired()).await;
    soon(cache.ready()).await.unwrap();
    (names, [client, other], proxy, cache)
}

both_backends! {
    async fn a_change_after_the_load_and_before_its_watch_is_seen(backend: Backend) {
        let server = backend.start().await;
        let (names, [_client, other], proxy, cache) = unarmed(&server).await;
        assert_eq!(shown(&cache).len(), 100);
        for name in &names {
            other.set(&format!("/f/{name}"), "new", None).await.unwrap();
        }
        assert!(shown(&cache).values().any(|data| data != "new"));
        proxy.heal().await.unwrap();
        Observer::by(&cache).until(|observer| observer.children.len() == 100 && observer.children.values().all(|data| data == "new")).await;
    }

    async fn a_child_deleted_after_the_load_and_before_its_watch_is_removed(backend: Backend) {
        let server = backend.start().await;
        let (names, [_client, other], proxy, cache) = unarmed(&server).await;
        for name in &names[..50] {
            other.delete(&format!("/f/{name}"), None).await.unwrap();
        }
        // A new node with an old name.
        other.create("/f/000", "other", docent::CreateMode::Persistent).await.unwrap();
        proxy.heal().await.unwrap();
        let mut observer = Observer::by(&cache);
        observer.until(|observer| observer.children.len() == 51 && observer.children["000"] == "other").await;
        // All remaining children are watched.
        for name in &names[50..] {
            other.set(&format!("/f/{name}"), "new", None).await.unwrap();
        }
        observer.until(|observer| observer.children.values().filter(|data| *data == "new").count() == 50).await;
    }
}
