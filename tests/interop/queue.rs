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
async fn docents_items_are_consumed_by_curator_unless_docent_has_claimed_them() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = queue(&client);
    let peer = curator.make(&format!("consumer {PATH} {LOCKS}")).await;
    soon(own.put(&"first".to_owned())).await.unwrap();
    assert_eq!(peer.done("take").await, ["first"]);
    assert_eq!(soon(own.try_take()).await.unwrap().map(|delivery| delivery.item().clone()), None);

    let items = ["second", "third", "fourth", ""].map(str::to_owned);
    soon(own.put_all(&items)).await.unwrap();
    let second = soon(own.take()).await.unwrap();
    assert_eq!(second.item(), "second", "the first item was taken by Curator");
    peer.done("finish").await;
    assert_eq!(peer.done("take").await, ["third"]);
    assert!(second.is_held());
    soon(second.ack()).await.unwrap();
    peer.done("finish").await;
    for item in ["fourth", ""] {
        assert_eq!(peer.done("take").await, [item]);
        peer.done("finish").await;
    }
    soon(async { while !own.is_empty().await.unwrap() {} }).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn curators_items_are_taken_in_order_and_nodes_with_several_items_become_dead_letters() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = queue(&client);
    let peer = curator.make(&format!("producer {PATH}")).await;
    let taking = tokio::spawn({
        let own = own.clone();
        async move { own.take().await }
    });
    for put in ["put first", "put second", "put-multi a b", "put-multi third", "put "] {
        peer.done(put).await;
    }
    let first = soon(taking).await.unwrap().unwrap();
    assert_eq!(first.item(), "first");
    for item in ["second", "third", ""] {
        let delivery = soon(own.take()).await.unwrap();
        assert_eq!(delivery.item(), item);
        soon(delivery.ack()).await.unwrap();
    }
    soon(first.ack()).await.unwrap();
    assert!(soon(own.try_take()).await.unwrap().is_none() && soon(own.is_empty()).await.unwrap());

    let letters = soon(own.dead_letters().list()).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].item.as_str(), &letters[0].reason),
        ("queue-0000000002", &DeadReason::Undecodable)
    );
    // The data is exactly as Curator put it, so nothing is lost.
    let data = b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02";
    assert_eq!(letters[0].data, &data[..]);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn simple_queues_hand_items_of_either_to_the_other_in_order() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = SimpleQueue::new(&client, PATH).unwrap();
    let peer = curator.make(&format!("simple-queue {PATH}")).await;
    peer.refused("poll").await;

    let taking = peer.start("take");
    soon(own.put("first")).await.unwrap();
    assert_eq!(taking.done().await, ["first"]);
    for item in ["second", "third", ""] {
        soon(own.put(item)).await.unwrap();
    }
    assert_eq!(peer.done("peek").await, ["second"]);
    assert_eq!(peer.done("poll").await, ["second"]);
    assert_eq!(soon(own.try_take()).await.unwrap().unwrap(), "third");
    assert_eq!(peer.done("take").await, [""]);
    assert!(soon(own.is_empty()).await.unwrap());

    let taking = tokio::spawn({
        let own = own.clone();
        async move { own.take().await }
    });
    peer.done("offer first").await;
    assert_eq!(soon(taking).await.unwrap().unwrap(), "first");
    for item in ["second", "third", ""] {
        peer.done(&format!("offer {item}")).await;
    }
    assert_eq!(soon(own.peek()).await.unwrap().unwrap(), "second");
    assert_eq!(soon(own.take()).await.unwrap(), "second");
    assert_eq!(peer.done("poll").await, ["third"]);
    assert_eq!(soon(own.take()).await.unwrap(), "");
    peer.refused("peek").await;
}
