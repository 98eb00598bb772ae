//! One-shot watches of children that were read many at a time.

use crate::children_cache::{Told, folder, shown};
use crate::{builder, connect};
use docent::Client;
use docent::cache::ChildrenCache;
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

/// A folder of a hundred children, which are more than are read one by one, and a cache of it whose request
/// for the watches that were not set by reads is held. Also their names, its client and one beside it, and
/// the proxy.
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
        Told::by(&cache).until(|told| told.children.len() == 100 && told.children.values().all(|data| data == "new")).await;
    }

    async fn a_child_deleted_after_the_load_and_before_its_watch_goes(backend: Backend) {
        let server = backend.start().await;
        let (names, [_client, other], proxy, cache) = unarmed(&server).await;
        for name in &names[..50] {
            other.delete(&format!("/f/{name}"), None).await.unwrap();
        }
        // Another node, as new as its name is old.
        other.create("/f/000", "other", docent::CreateMode::Persistent).await.unwrap();
        proxy.heal().await.unwrap();
        let mut told = Told::by(&cache);
        told.until(|told| told.children.len() == 51 && told.children["000"] == "other").await;
        // Whatever is left is watched.
        for name in &names[50..] {
            other.set(&format!("/f/{name}"), "new", None).await.unwrap();
        }
        told.until(|told| told.children.values().filter(|data| *data == "new").count() == 50).await;
    }
}
