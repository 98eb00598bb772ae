//! Requests of caches with a persistent watch, counted without timing.

use crate::children_cache::{Observer, folder};
use crate::{builder, connect};
use docent::CreateMode;
use docent::cache::{ChildrenCache, TreeCache, TreeEvent};
use docent_battery::{Backend, FrameKind, Proxy, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::StreamExt;

/// Returns the requests in the proxy's trace after the first `seen` frames, in order.
fn requests(proxy: &Proxy, seen: usize) -> Vec<OpCode> {
    let is_asked = |op: &OpCode| *op != OpCode::Ping;
    let trace = proxy.trace();
    let requests = trace[seen..].iter().filter(|frame| frame.kind == FrameKind::Request);
    requests.filter_map(|frame| frame.op).filter(is_asked).collect()
}

both_backends! {
    async fn a_join_a_change_and_a_leave_cost_one_read_each(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        folder(&other, (0..200).map(|n| n.to_string())).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let connected = proxy.trace().len();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        // The reply arrives after all requests that the cache may still send.
        client.sync("/").await.unwrap();
        let load = requests(&proxy, connected);
        assert_eq!(load[..2], [OpCode::AddWatch, OpCode::GetChildren2]);
        let count = |op| load.iter().filter(|asked| **asked == op).count();
        assert!(count(OpCode::MultiRead) <= 4 && count(OpCode::GetData) <= 64, "{load:?}");
        assert_eq!(count(OpCode::GetData) + count(OpCode::MultiRead) + 3, load.len(), "{load:?}");
        for change in ["join", "change", "leave"] {
            let seen = proxy.trace().len();
            match change {
                "join" => drop(other.create("/f/new", "1", CreateMode::Persistent).await.unwrap()),
                "change" => drop(other.set("/f/new", "2", None).await.unwrap()),
                _ => other.delete("/f/new", None).await.unwrap(),
            }
            observer.until_next(if change == "leave" { "delete new" } else { "apply new" }).await;
            client.sync("/").await.unwrap();
            let mut asked = requests(&proxy, seen);
            assert_eq!(asked.pop(), Some(OpCode::Sync));
            assert_eq!(asked, [OpCode::GetData], "{change}");
        }
        let seen = proxy.trace().len();
        drop((cache, observer));
        proxy.until(|trace| trace[seen..].iter().any(|frame| frame.is_reply(OpCode::RemoveWatches))).await;
        if let Some(embedded) = server.as_embedded() {
            assert_eq!(embedded.watch_count(), 0);
        }
    }

    async fn a_node_of_a_tree_costs_one_read_on_creation_and_one_on_deletion(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        folder(&other, ["a", "b"]).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let cache = TreeCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        let mut events = cache.changes();
        while !matches!(soon(events.next()).await, Some(Ok(TreeEvent::Ready))) {}
        let seen = proxy.trace().len();
        let made = ["/f/a/c", "/f/a/c/d", "/f/a/c/d/e"];
        for path in made {
            other.create(path, "1", CreateMode::Persistent).await.unwrap();
        }
        soon(async { while !made.iter().all(|path| cache.current().get(path).is_some()) { events.next().await; } }).await;
        other.delete_all("/f/a").await.unwrap();
        soon(async { while cache.current().get("/f/a").is_some() { events.next().await; } }).await;
        client.sync("/").await.unwrap();
        let mut asked = requests(&proxy, seen);
        assert_eq!(asked.pop(), Some(OpCode::Sync));
        assert_eq!(asked, [OpCode::GetData; 2 * 3 + 1]);
        let paths = cache.current();
        assert_eq!(paths.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>(), ["/f", "/f/b"]);
    }
}
