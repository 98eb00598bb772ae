//! `Queue` and `DistributedQueue`, `SimpleQueue` and `SimpleDistributedQueue`.

use crate::curator::both;
use docent::queue::{DeadReason, QueueLayout, Raw};
use docent::{Client, Queue, SimpleQueue};
use docent_battery::Backend;
use docent_tests::soon;
use std::time::Duration;

const PATH: &str = "/queues/jobs";
const LOCKS: &str = "/queues/locks";

fn queue(client: &Client) -> Queue<String> {
    let layout = QueueLayout::Curator { lock_path: LOCKS.to_owned() };
    let builder = Queue::builder_with(client, PATH, Raw).layout(layout);
    builder.undecodable_after(Duration::ZERO).build().unwrap()
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn items_of_ours_are_consumed_by_curators_unless_ours_has_them() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = queue(&client);
    let theirs = curator.make(&format!("consumer {PATH} {LOCKS}")).await;
    soon(ours.put(&"first".to_owned())).await.unwrap();
    assert_eq!(theirs.done("take").await, ["first"]);
    assert_eq!(soon(ours.try_take()).await.unwrap().map(|delivery| delivery.item().clone()), None);

    let items = ["second", "third", "fourth", ""].map(str::to_owned);
    soon(ours.put_all(&items)).await.unwrap();
    let second = soon(ours.take()).await.unwrap();
    assert_eq!(second.item(), "second", "the first one is theirs");
    theirs.done("finish").await;
    assert_eq!(theirs.done("take").await, ["third"]);
    assert!(second.is_held());
    soon(second.ack()).await.unwrap();
    theirs.done("finish").await;
    for item in ["fourth", ""] {
        assert_eq!(theirs.done("take").await, [item]);
        theirs.done("finish").await;
    }
    soon(async { while !ours.is_empty().await.unwrap() {} }).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn items_of_curators_are_taken_in_order_and_those_put_several_to_a_node_are_set_aside() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = queue(&client);
    let theirs = curator.make(&format!("producer {PATH}")).await;
    let taking = tokio::spawn({
        let ours = ours.clone();
        async move { ours.take().await }
    });
    for put in ["put first", "put second", "put-multi a b", "put-multi third", "put "] {
        theirs.done(put).await;
    }
    let first = soon(taking).await.unwrap().unwrap();
    assert_eq!(first.item(), "first");
    for item in ["second", "third", ""] {
        let delivery = soon(ours.take()).await.unwrap();
        assert_eq!(delivery.item(), item);
        soon(delivery.ack()).await.unwrap();
    }
    soon(first.ack()).await.unwrap();
    assert!(soon(ours.try_take()).await.unwrap().is_none() && soon(ours.is_empty()).await.unwrap());

    let letters = soon(ours.dead_letters().list()).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].item.as_str(), &letters[0].reason),
        ("queue-0000000002", &DeadReason::Undecodable)
    );
    // As Curator put it, so that nothing is gone.
    let data = b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02";
    assert_eq!(letters[0].data, &data[..]);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn simple_queues_hand_items_of_either_to_the_other_in_order() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = SimpleQueue::new(&client, PATH).unwrap();
    let theirs = curator.make(&format!("simple-queue {PATH}")).await;
    theirs.refused("poll").await;

    let taking = theirs.tell("take");
    soon(ours.put("first")).await.unwrap();
    assert_eq!(taking.done().await, ["first"]);
    for item in ["second", "third", ""] {
        soon(ours.put(item)).await.unwrap();
    }
    assert_eq!(theirs.done("peek").await, ["second"]);
    assert_eq!(theirs.done("poll").await, ["second"]);
    assert_eq!(soon(ours.try_take()).await.unwrap().unwrap(), "third");
    assert_eq!(theirs.done("take").await, [""]);
    assert!(soon(ours.is_empty()).await.unwrap());

    let taking = tokio::spawn({
        let ours = ours.clone();
        async move { ours.take().await }
    });
    theirs.done("offer first").await;
    assert_eq!(soon(taking).await.unwrap().unwrap(), "first");
    for item in ["second", "third", ""] {
        theirs.done(&format!("offer {item}")).await;
    }
    assert_eq!(soon(ours.peek()).await.unwrap().unwrap(), "second");
    assert_eq!(soon(ours.take()).await.unwrap(), "second");
    assert_eq!(theirs.done("poll").await, ["third"]);
    assert_eq!(soon(ours.take()).await.unwrap(), "");
    theirs.refused("peek").await;
}
