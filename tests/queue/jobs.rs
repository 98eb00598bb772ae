//! Helpers that the tests of this suite share.

use docent::queue::QueueBuilder;
use docent::{Client, Delivery, Queue};
use docent_tests::soon;
use std::time::Duration;

pub(crate) const QUEUE: &str = "/queue";

/// Long enough to see that nothing happens.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);

pub(crate) fn queue(client: &Client) -> Queue<u64> {
    builder(client).build().unwrap()
}

/// A queue that hands items out again without delay, and immediately dead-letters items that it cannot
/// decode.
pub(crate) fn builder(client: &Client) -> QueueBuilder<u64> {
    let builder = Queue::builder(client, QUEUE);
    builder.redelivery_delay(Duration::ZERO, Duration::ZERO).undecodable_after(Duration::ZERO)
}

/// Waits until that many consumers are in the line of idle consumers.
pub(crate) async fn until_idle(client: &Client, count: usize) {
    soon(async {
        let folder = format!("{QUEUE}/idle");
        while client.children(&folder).await.map_or(0, |line| line.names.len()) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Takes an item that is present.
pub(crate) async fn take(queue: &Queue<u64>) -> Delivery<u64> {
    soon(queue.try_take()).await.unwrap().expect("the queue must have an item")
}

/// Takes an item and acknowledges it.
pub(crate) async fn finish(queue: &Queue<u64>) -> u64 {
    let delivery = take(queue).await;
    let item = *delivery.item();
    soon(delivery.ack()).await.unwrap();
    item
}

/// Takes and acknowledges all free items, and returns them in the order in which they are handed out.
pub(crate) async fn drain(queue: &Queue<u64>) -> Vec<u64> {
    let mut items = Vec::new();
    while let Some(delivery) = soon(queue.try_take()).await.unwrap() {
        items.push(*delivery.item());
        soon(delivery.ack()).await.unwrap();
    }
    items
}
