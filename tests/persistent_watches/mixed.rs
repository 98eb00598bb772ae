//! Watches of both kinds on the same nodes.

use crate::children_cache::{Observer, folder};
use crate::{builder, connect};
use docent::CreateMode;
use docent::cache::ChildrenCache;
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::StreamExt;

both_backends! {
    async fn one_shot_watches_on_the_folder_and_its_children_fire_and_remove_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        folder(&other, ["a"]).await;
        // One watch is set before the persistent watch, and the rest after it.
        let mut early = client.watch_children("/f").unwrap();
        assert_eq!(soon(early.next()).await.unwrap().unwrap().unwrap().names, ["a"]);
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        let mut names = client.watch_children("/f").unwrap();
        let mut data = client.watch_data("/f").unwrap();
        let mut exists = client.watch_exists("/f").unwrap();
        let mut child = client.watch_data("/f/a").unwrap();
        let mut below = client.watch_children("/f/a").unwrap();
        soon(names.next()).await.unwrap().unwrap();
        soon(data.next()).await.unwrap().unwrap();
        soon(exists.next()).await.unwrap().unwrap();
        soon(child.next()).await.unwrap().unwrap();
        soon(below.next()).await.unwrap().unwrap();
        for round in 0..4 {
            let path = format!("/f/n{round}");
            other.create(&path, "1", CreateMode::Persistent).await.unwrap();
            for names in [&mut early, &mut names] {
                let children = soon(names.next()).await.unwrap().unwrap().unwrap();
                assert_eq!(children.names.len(), round + 2, "round {round}");
            }
            observer.until_next(&format!("apply n{round}")).await;
            other.set("/f", format!("{round}"), None).await.unwrap();
            let node = soon(data.next()).await.unwrap().unwrap().unwrap();
            assert_eq!(node.data, format!("{round}"));
            soon(exists.next()).await.unwrap().unwrap();
            other.set("/f/a", format!("{round}"), None).await.unwrap();
            let node = soon(child.next()).await.unwrap().unwrap().unwrap();
            assert_eq!(node.data, format!("{round}"));
            observer.until(|observer| observer.children["a"] == round.to_string()).await;
            other.create(&format!("/f/a/n{round}"), "1", CreateMode::Persistent).await.unwrap();
            assert_eq!(soon(below.next()).await.unwrap().unwrap().unwrap().names.len(), round + 1);
        }
        // The end of one-shot watches does not affect the cache.
        drop((early, names, data, exists, child, below));
        client.sync("/").await.unwrap();
        other.create("/f/last", "1", CreateMode::Persistent).await.unwrap();
        observer.until_next("apply last").await;
        other.set("/f/a", "end", None).await.unwrap();
        observer.until(|observer| observer.children["a"] == "end").await;
    }

    async fn the_end_of_the_persistent_watch_affects_no_other_watch(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        folder(&other, ["a"]).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        let mut names = client.watch_children("/f").unwrap();
        let mut data = client.watch_data("/f").unwrap();
        soon(names.next()).await.unwrap().unwrap();
        soon(data.next()).await.unwrap().unwrap();
        drop(cache);
        for round in 0..3 {
            other.create(&format!("/f/n{round}"), "1", CreateMode::Persistent).await.unwrap();
            assert_eq!(soon(names.next()).await.unwrap().unwrap().unwrap().names.len(), round + 2);
            other.set("/f", format!("{round}"), None).await.unwrap();
            assert_eq!(soon(data.next()).await.unwrap().unwrap().unwrap().data, format!("{round}"));
        }
        drop((names, data));
        // All watches at the server are removed.
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::RemoveWatches))).await;
        client.sync("/").await.unwrap();
        if let Some(embedded) = server.as_embedded() {
            assert_eq!(embedded.watch_count(), 0);
        }
    }

    async fn watches_of_both_kinds_are_restored_on_a_new_link(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        folder(&other, ["a", "b"]).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        let mut names = client.watch_children("/f").unwrap();
        let mut child = client.watch_data("/f/a").unwrap();
        soon(names.next()).await.unwrap().unwrap();
        soon(child.next()).await.unwrap().unwrap();
        for round in 0..3 {
            proxy.cut().await;
            other.create(&format!("/f/gap{round}"), "1", CreateMode::Persistent).await.unwrap();
            other.set("/f/a", format!("gap{round}"), None).await.unwrap();
            proxy.heal().await.unwrap();
            assert_eq!(soon(names.next()).await.unwrap().unwrap().unwrap().names.len(), 2 * round + 3);
            assert_eq!(soon(child.next()).await.unwrap().unwrap().unwrap().data, format!("gap{round}"));
            observer.until(|observer| observer.children.contains_key(&format!("gap{round}"))).await;
            observer.until(|observer| observer.children["a"] == format!("gap{round}")).await;
            other.create(&format!("/f/n{round}"), "1", CreateMode::Persistent).await.unwrap();
            assert_eq!(soon(names.next()).await.unwrap().unwrap().unwrap().names.len(), 2 * round + 4);
            observer.until(|observer| observer.children.contains_key(&format!("n{round}"))).await;
            other.set("/f/a", format!("n{round}"), None).await.unwrap();
            assert_eq!(soon(child.next()).await.unwrap().unwrap().unwrap().data, format!("n{round}"));
            observer.until(|observer| observer.children["a"] == format!("n{round}")).await;
        }
        assert!(client.health().persistent_watches);
    }
}
