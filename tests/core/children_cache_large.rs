//! Caches of many children. The tests count requests and never measure time.

use crate::children_cache::Observer;
use docent::cache::ChildrenCache;
use docent::{Client, CreateMode};
use docent_battery::{Backend, Fate, FrameKind, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, while_progressing};
use futures_util::future::join_all;
use std::collections::HashSet;

/// Creates `/f` with that many children.
async fn fill(client: &Client, count: usize) {
    const AT_ONCE: usize = 2_000;
    client.create("/f", "", CreateMode::Persistent).await.unwrap();
    join_all((0..count).step_by(AT_ONCE).map(|first| async move {
        let mut transaction = client.transaction();
        for n in first..count.min(first + AT_ONCE) {
            transaction = transaction.create(&format!("/f/{n:06}"), "1", CreateMode::Persistent);
        }
        transaction.commit().await.unwrap();
    }))
    .await;
}

/// Returns the highest number of requests that were in flight together.
fn most_in_flight(trace: &[Traced]) -> usize {
    let (mut awaiting, mut most) = (HashSet::new(), 0);
    for frame in trace.iter().filter(|frame| frame.op != Some(OpCode::Ping)) {
        match frame.kind {
            FrameKind::Request => {
                awaiting.insert(frame.xid);
            }
            FrameKind::Reply if frame.fate == Fate::Forwarded => {
                awaiting.remove(&frame.xid);
            }
            _ => {}
        }
        most = most.max(awaiting.len());
    }
    most
}

both_backends! {
    async fn thousands_of_children_take_few_requests_and_are_watched_afterwards(backend: Backend) {
        const CHILDREN: usize = 5_000;
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        fill(&other, CHILDREN).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        assert_eq!(cache.current().len(), CHILDREN);
        let armed = || proxy.trace().iter().filter(|frame| frame.is_reply(OpCode::SetWatches)).count();
        let asked = || proxy.trace().iter().filter(|frame| frame.is_request(OpCode::SetWatches)).count();
        soon(async {
            let mut before = 0;
            while armed() == 0 || armed() < asked() || asked() != before {
                before = asked();
                client.sync("/").await.unwrap();
                client.sync("/").await.unwrap();
            }
        })
        .await;
        let trace = proxy.trace();
        let last_of_load = trace.iter().rposition(|frame| frame.is_reply(OpCode::MultiRead)).unwrap();
        let count = |trace: &[Traced], op| trace.iter().filter(|frame| frame.is_request(op)).count();
        assert_eq!(count(&trace, OpCode::GetChildren2), 1);
        assert!(count(&trace, OpCode::MultiRead) <= CHILDREN / 60, "{}", count(&trace, OpCode::MultiRead));
        let singles = count(&trace[..last_of_load], OpCode::GetData);
        assert!(singles <= 128, "{singles} children were read one by one during the initial load");
        assert!(count(&trace, OpCode::GetData) <= 128, "children were read again for their watches");
        assert!(count(&trace, OpCode::SetWatches) <= 40, "{}", count(&trace, OpCode::SetWatches));
        // This test's sync and the connect are in flight, too.
        assert!(most_in_flight(&trace) <= 64 + 1, "{}", most_in_flight(&trace));
        if let Some(embedded) = server.as_embedded() {
            assert_eq!(embedded.watch_count(), CHILDREN + 1);
            let removed = || CHILDREN + 1 - embedded.watch_count();
            drop(cache);
            while_progressing(removed, async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
            let trace = proxy.trace();
            assert!(most_in_flight(&trace) <= 256, "too many requests in flight: {}", most_in_flight(&trace));
        }
    }

    async fn thousands_of_children_are_right_after_a_lost_link(backend: Backend) {
        const CHILDREN: usize = 3_000;
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        fill(&other, CHILDREN).await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        proxy.cut().await;
        join_all((0..CHILDREN).step_by(3).map(|n| {
            let other = &other;
            async move { other.set(&format!("/f/{n:06}"), "2", None).await.unwrap() }
        }))
        .await;
        proxy.heal().await.unwrap();
        observer.until_next("ready").await;
        assert_eq!(observer.children.len(), CHILDREN);
        assert_eq!(observer.children.values().filter(|data| *data == "2").count(), CHILDREN / 3);
        let multi_reads = proxy.trace().iter().filter(|frame| frame.is_request(OpCode::MultiRead)).count();
        assert!(multi_reads > CHILDREN / 64, "not all children were read again");
    }
}

#[tokio::test(start_paused = true)]
async fn more_children_than_a_sixteen_bit_number_counts() {
    const CHILDREN: usize = 70_000;
    let server = Backend::Memory.start().await;
    let other = builder(&server, server.address().to_string()).connect().await.unwrap();
    fill(&other, CHILDREN).await;
    let client = builder(&server, server.address().to_string()).connect().await.unwrap();
    let cache = ChildrenCache::new(&client, "/f").unwrap();
    soon(cache.ready()).await.unwrap();
    assert_eq!(cache.current().len(), CHILDREN);
    let mut observer = Observer::by(&cache);
    other.set("/f/069999", "2", None).await.unwrap();
    other.delete("/f/000000", None).await.unwrap();
    observer.until(|observer| observer.children.get("069999").is_some_and(|data| data == "2")).await;
    observer.until(|observer| observer.children.len() == CHILDREN - 1).await;
}
