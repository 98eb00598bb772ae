//! Reports about nodes that Curator created.

use crate::curator::{IDENTITY, both};
use docent::Client;
use docent::inspect::{
    Contender, ElectionLayout, Inspector, InstanceState, Kind, NumberFormat, QueueLayout, Recipe, Writer,
};
use docent::recipe::since_1970_ms;
use docent_battery::Backend;
use docent_tests::{soon, until};
use std::time::SystemTime;

async fn recipe(client: &Client, path: &str) -> Recipe {
    soon(Inspector::new(client).path(path)).await.unwrap().recipe
}

/// Returns the contenders of a lock that Curator created, when there are `count`.
async fn until_contenders(client: &Client, path: &str, count: usize) -> Vec<Contender> {
    let mut found = Vec::new();
    until(async || {
        if let Recipe::Mutex(line) | Recipe::ReadWriteLock(line) = recipe(client, path).await {
            found = line.contenders;
        }
        found.len() == count
    })
    .await;
    assert!(found.iter().all(|one| one.writer == Writer::Curator && one.session.is_some()));
    found
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn holders_and_waiters_of_curators_locks_are_named() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (one, other) = (curator.make("mutex /m").await, curator.make("mutex /m").await);
    one.done("acquire").await;
    let waiting = other.start("acquire");
    let line = until_contenders(&client, "/m", 2).await;
    assert!(line[0].holds && line[0].identity.as_ref().unwrap().as_str() == Some(IDENTITY));
    assert_eq!(line[1].waits_for.as_ref(), Some(&line[0].name));
    one.done("release").await;
    waiting.done().await;

    let (reader, writer) = (curator.make("rw-lock /rw").await, curator.make("rw-lock /rw").await);
    reader.done("read").await;
    let writing = writer.start("write");
    let line = until_contenders(&client, "/rw", 2).await;
    assert_eq!(recipe(&client, "/rw").await.kind(), Kind::ReadWriteLock);
    assert_eq!(line.iter().map(|one| one.holds).collect::<Vec<_>>(), [true, false]);
    reader.done("stop-reading").await;
    writing.done().await;

    let semaphore = curator.make("semaphore /s 2").await;
    semaphore.done("acquire 2").await;
    let Recipe::Semaphore(semaphore) = recipe(&client, "/s").await else { panic!("no semaphore") };
    assert_eq!((semaphore.limit, semaphore.permits.len(), semaphore.waiters.len()), (None, 2, 0));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn leaders_of_curators_elections_are_named() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    for (kind, layout) in
        [("latch", ElectionLayout::LeaderLatch), ("selector", ElectionLayout::LeaderSelector)]
    {
        let path = format!("/election/{kind}");
        let first = curator.make(&format!("{kind} {path} first")).await;
        first.done("stand").await;
        first.done("lead").await;
        let second = curator.make(&format!("{kind} {path} second")).await;
        second.done("stand").await;
        let id = |one: &Contender| one.identity.as_ref().unwrap().to_string();
        until(async || match recipe(&client, &path).await {
            Recipe::Election(election) if election.candidates.len() == 1 => {
                assert_eq!(election.layout, layout);
                assert_eq!(
                    (id(&election.leader.unwrap()), id(&election.candidates[0])),
                    ("first".into(), "second".into())
                );
                true
            }
            _ => false,
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn curators_other_recipes_are_recognised() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let queue = curator.make("producer /queue").await;
    queue.done("put first").await;
    queue.done("put second").await;
    let Recipe::Queue(queue) = recipe(&client, "/queue").await else { panic!("no queue") };
    assert_eq!((queue.layout, queue.depth), (QueueLayout::Curator, 2));

    curator.make("simple-queue /simple").await.done("offer item").await;
    let Recipe::Queue(queue) = recipe(&client, "/simple").await else { panic!("no queue") };
    assert_eq!((queue.layout, queue.depth), (QueueLayout::Simple, 1));

    let _member = curator.make("member /group host-7 payload").await;
    until(async || match recipe(&client, "/group").await {
        Recipe::Membership(group) => group.members[0].id == "host-7",
        _ => false,
    })
    .await;

    let barrier = curator.make("barrier /barrier").await;
    barrier.done("set").await;
    assert_eq!(recipe(&client, "/barrier").await.kind(), Kind::Barrier);

    let count = curator.make("count /count 258").await;
    count.done("get").await;
    let found = recipe(&client, "/count").await;
    let Recipe::Counter(count) = found else { panic!("{found:?} is not a counter") };
    assert_eq!((count.number.as_str(), count.format), ("258", NumberFormat::I32));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn delays_priorities_and_claims_of_curators_queues_are_reported() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let due = since_1970_ms(SystemTime::now()) + 3_600_000;
    let delays = curator.make("delays /delays").await;
    delays.done(&format!("put later {due}")).await;
    delays.done(&format!("put latest {}", due + 1)).await;
    delays.done("put now 1").await;
    let Recipe::Queue(queue) = recipe(&client, "/delays").await else { panic!("no queue") };
    assert_eq!((queue.depth, queue.delayed), (3, 2));
    assert_eq!(queue.next_due.map(since_1970_ms), Some(due));
    assert!(queue.head.unwrap().name.contains("|00000001|"));

    let priorities = curator.make("priorities /priorities").await;
    priorities.done("put last 5").await;
    priorities.done("put first -7").await;
    let Recipe::Queue(queue) = recipe(&client, "/priorities").await else { panic!("no queue") };
    assert_eq!((queue.depth, queue.head.unwrap().priority), (2, Some(-7)));

    curator.make("producer /jobs").await.done("put job").await;
    let consumer = curator.make("consumer /jobs /jobs-locks").await;
    consumer.done("take").await;
    let Recipe::Queue(queue) = recipe(&client, "/jobs").await else { panic!("no queue") };
    assert_eq!((queue.depth, queue.claimed, &queue.head), (1, Some(1), &None));
    assert!(queue.claims[0].session.is_some());
    let Recipe::Queue(claims) = recipe(&client, "/jobs-locks").await else { panic!("no claims") };
    assert_eq!((claims.layout, claims.claimed), (QueueLayout::CuratorClaims, Some(1)));
    consumer.done("finish").await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn curators_instances_are_reported_with_their_state() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let discovery = curator.make("discovery /services").await;
    discovery.done("register orders theirs 10.0.0.8 8080 8443 1234567890123 DYNAMIC zone=a - true").await;
    let Recipe::Service(service) = recipe(&client, "/services/orders").await else { panic!("no service") };
    let instance = &service.instances[0];
    assert_eq!((instance.state, instance.address.as_deref()), (InstanceState::Enabled, Some("10.0.0.8")));
    assert_eq!(instance.payload.as_ref().unwrap().json.as_ref().unwrap()["zone"], "a");
    assert_eq!(
        (instance.id.as_deref(), instance.registered_at_ms),
        (Some("theirs"), Some(1_234_567_890_123))
    );
    assert_eq!(recipe(&client, "/services").await.kind(), Kind::Registry);
}
