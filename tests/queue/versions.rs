//! Consumers of two versions. The older one cannot decode the items of newer producers.

use crate::jobs::{QUEUE, until_idle};
use docent::queue::{DeadReason, PutOptions, QueueBuilder};
use docent::{Client, Queue};
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::{builder, connect, soon, until, within};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Time in which an item is handed to a consumer that understands it. It is much shorter than a session
/// timeout, and than the interval of checks, which is a sixth of that.
pub(crate) const PROMPTLY: Duration = Duration::from_secs(5);

/// A queue that returns items without delay, and leaves items that it cannot decode to others for `patience`.
pub(crate) fn of<T: Serialize + DeserializeOwned + 'static>(
    client: &Client,
    patience: Duration,
) -> QueueBuilder<T> {
    let builder = Queue::builder(client, QUEUE).redelivery_delay(Duration::ZERO, Duration::ZERO);
    builder.undecodable_after(patience)
}

/// A client whose session outlives the test, so none of its periodic checks falls into the test.
async fn patient(server: &TestServer) -> Client {
    builder(server, server.connect_string())
        .session_timeout(Duration::from_secs(120))
        .connect()
        .await
        .unwrap()
}

/// Takes one item in the background.
fn take<T: Send + 'static>(queue: &Queue<T>) -> JoinHandle<docent::Delivery<T>> {
    let queue = queue.clone();
    tokio::spawn(async move { queue.take().await.unwrap() })
}

/// A job of a kind that a `u64` cannot represent.
pub(crate) fn new_kind() -> Value {
    json!({ "kind": "new" })
}

/// Consumers of the older version that wait in line. Each has read the present item and left it to others.
async fn old_consumers_that_skipped_it(server: &TestServer, count: usize, patience: Duration) -> Vec<Client> {
    let watcher = connect(server).await;
    let mut old = Vec::new();
    for number in 1..=count {
        let client = patient(server).await;
        let waiting = take(&of::<u64>(&client, patience).build().unwrap());
        until_idle(&watcher, number).await;
        old.push(client);
        drop(waiting);
    }
    old
}

both_backends! {
    async fn an_item_that_the_first_consumers_in_line_cannot_decode_is_handed_to_one_behind_them(backend: Backend) {
        for count in [2, 5] {
            let server = backend.start().await;
            let (first, second) = (patient(&server).await, patient(&server).await);
            let new = |client| of::<Value>(client, Duration::from_secs(300)).build().unwrap();
            new(&first).put(&new_kind()).await.unwrap();
            // The older consumers may take this item, in an hour.
            new(&first).put_with(&json!(7), PutOptions::new().delay(Duration::from_secs(3_600))).await.unwrap();
            let _old = old_consumers_that_skipped_it(&server, count, Duration::from_secs(300)).await;
            let held = soon(new(&first).take()).await.unwrap();
            let waiting = take(&new(&second));
            until_idle(&first, count + 1).await;
            soon(held.nack_now()).await.unwrap();
            let again = within(PROMPTLY, waiting).await.unwrap();
            assert_eq!((again.item(), again.deliveries()), (&new_kind(), Some(2)));
            // The same again, after the end of a session.
            let third = patient(&server).await;
            let waiting = take(&new(&third));
            until_idle(&first, count + 1).await;
            server.expire(second.session_id().unwrap()).await.unwrap();
            let again = within(PROMPTLY, waiting).await.unwrap();
            assert_eq!((again.item(), again.deliveries()), (&new_kind(), Some(3)));
            soon(again.ack()).await.unwrap();
        }
    }

    async fn a_long_running_item_is_not_buried_by_a_consumer_that_cannot_decode_it(backend: Backend) {
        let patience = Duration::from_secs(1);
        let server = backend.start().await;
        let (first, second) = (patient(&server).await, patient(&server).await);
        let new = |client| of::<Value>(client, patience).build().unwrap();
        let held = {
            new(&first).put(&new_kind()).await.unwrap();
            soon(new(&first).take()).await.unwrap()
        };
        let old = patient(&server).await;
        let _waiting = take(&of::<u64>(&old, patience).build().unwrap());
        until_idle(&first, 1).await;
        soon(held.nack_now()).await.unwrap();
        // The older consumer claims the item.
        let letters = || async { new(&first).dead_letters().list().await.unwrap() };
        until(async || first.exists(&format!("{QUEUE}/items/item-0000000000")).await.unwrap().unwrap().version > 0).await;
        let held = soon(new(&first).take()).await.unwrap();
        tokio::time::sleep(2 * patience).await;
        let waiting = take(&new(&second));
        until_idle(&first, 2).await;
        soon(held.nack_now()).await.unwrap();
        let again = within(PROMPTLY, waiting).await.unwrap();
        assert!(letters().await.is_empty());
        soon(again.ack()).await.unwrap();
    }

    async fn an_item_that_no_consumer_decodes_becomes_a_dead_letter(backend: Backend) {
        let patience = Duration::from_secs(1);
        let server = backend.start().await;
        let client = connect(&server).await;
        let new = of::<Value>(&client, patience).build().unwrap();
        let put = Instant::now();
        new.put(&new_kind()).await.unwrap();
        let _old = old_consumers_that_skipped_it(&server, 3, patience).await;
        until(async || !new.dead_letters().list().await.unwrap().is_empty()).await;
        assert!(put.elapsed() >= patience);
        let letters = new.dead_letters().list().await.unwrap();
        assert_eq!((letters.len(), &letters[0].reason), (1, &DeadReason::Undecodable));
        assert!(new.is_empty().await.unwrap());
    }

    async fn in_ordered_mode_an_item_is_handed_to_a_consumer_that_decodes_it_before_later_items(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let patience = Duration::from_secs(300);
        let new = |client: &Client| of::<Value>(client, patience).ordered().build().unwrap();
        new(&client).put(&new_kind()).await.unwrap();
        new(&client).put(&json!(7)).await.unwrap();
        // The older consumers take their turn first and release the lock for the others.
        let mut old = Vec::new();
        for _ in 0..3 {
            let client = patient(&server).await;
            let jobs = of::<u64>(&client, patience).ordered().build().unwrap();
            assert!(soon(jobs.try_take()).await.unwrap().is_none());
            old.push((take(&jobs), client));
        }
        until_idle(&client, 3).await;
        let first = within(PROMPTLY, take(&new(&client))).await.unwrap();
        assert_eq!((first.item(), first.deliveries()), (&new_kind(), Some(1)));
        assert!(old.iter().all(|(taken, _)| !taken.is_finished()), "the second item was handed out before the first");
        // The item's consumer gives it back, and another one takes it.
        let other = patient(&server).await;
        let waiting = take(&new(&other));
        soon(first.nack_now()).await.unwrap();
        let again = within(PROMPTLY, waiting).await.unwrap();
        assert_eq!((again.item(), again.deliveries()), (&new_kind(), Some(2)));
        assert!(old.iter().all(|(taken, _)| !taken.is_finished()));
        soon(again.ack()).await.unwrap();
        // Every consumer can decode the second item, so the older ones take part again.
        let (mut second, _client) = old.remove(0);
        let taken = within(PROMPTLY, async {
            loop {
                if second.is_finished() {
                    break (&mut second).await.unwrap();
                }
                if let Some(index) = old.iter().position(|(taken, _)| taken.is_finished()) {
                    break old.remove(index).0.await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(*taken.item(), 7);
        soon(taken.ack()).await.unwrap();
    }

    async fn in_ordered_mode_an_item_that_no_consumer_decodes_becomes_a_dead_letter_before_the_next_is_handed_out(backend: Backend) {
        let patience = Duration::from_secs(1);
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let new = of::<Value>(&client, patience).ordered().build().unwrap();
        let old = |client| of::<u64>(client, patience).ordered().build().unwrap();
        new.put(&new_kind()).await.unwrap();
        new.put(&json!(7)).await.unwrap();
        let began = Instant::now();
        let taken = [take(&old(&client)), take(&old(&other))];
        let (taken, _, _) = soon(futures_util::future::select_all(taken)).await;
        let taken = taken.unwrap();
        assert!(began.elapsed() >= patience, "the second item was handed out before the first was ended");
        assert_eq!(*taken.item(), 7);
        let letters = new.dead_letters().list().await.unwrap();
        assert_eq!((letters.len(), &letters[0].reason), (1, &DeadReason::Undecodable));
        soon(taken.ack()).await.unwrap();
    }

    async fn in_ordered_mode_a_peek_shows_the_first_item_even_if_it_cannot_be_decoded(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let new = of::<Value>(&client, Duration::from_secs(300)).ordered().build().unwrap();
        let old = of::<u64>(&client, Duration::from_secs(300)).ordered().build().unwrap();
        new.put(&new_kind()).await.unwrap();
        new.put(&json!(7)).await.unwrap();
        assert!(soon(old.try_take()).await.unwrap().is_none());
        let error = soon(old.peek()).await.unwrap_err();
        assert!(matches!(&error, docent::queue::PeekError::Undecodable { item, .. } if item == "item-0000000000"), "{error}");
    }
}
