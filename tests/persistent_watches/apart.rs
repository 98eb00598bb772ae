//! A node that one transaction deletes and re-creates, whose two events arrive separately.

use crate::children_cache::{Observer, folder};
use crate::{builder, connect};
use docent::cache::{ChildrenCache, TreeCache, TreeEvent};
use docent::{Client, CreateMode};
use docent_battery::{Backend, Direction, both_backends};
use docent_tests::soon;
use futures_util::StreamExt;
use std::num::NonZeroU32;

/// Throttles the link, in bytes per second, to less than an event takes.
const SLOW: Option<NonZeroU32> = NonZeroU32::new(100);

async fn make_again(other: &Client) {
    let again = other.transaction().delete("/f/a", None).create("/f/a", "2", CreateMode::Persistent);
    again.commit().await.unwrap();
}

both_backends! {
    async fn a_re_created_child_is_never_reported_as_removed(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        folder(&other, ["a", "b"]).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        proxy.set_throttle(Direction::ToClient, SLOW);
        make_again(&other).await;
        observer.until_children(&[("a", "2"), ("b", "b")]).await;
        assert!(observer.log.iter().all(|entry| entry != "delete a"), "{:?}", observer.log);
    }

    async fn a_re_created_node_of_a_tree_is_never_reported_as_removed(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        folder(&other, ["a", "b"]).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let cache = TreeCache::new(&client, "/f").unwrap();
        let mut events = cache.changes();
        while !matches!(soon(events.next()).await, Some(Ok(TreeEvent::Ready))) {}
        proxy.set_throttle(Direction::ToClient, SLOW);
        make_again(&other).await;
        loop {
            match soon(events.next()).await.unwrap().unwrap() {
                TreeEvent::Added(path, node) if &*path == "/f/a" && node.data == "2" => break,
                TreeEvent::Delete(path) => panic!("{path} went"),
                _ => {}
            }
        }
    }
}
