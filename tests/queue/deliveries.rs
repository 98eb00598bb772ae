//! The items of a queue as a stream.

use crate::jobs::queue;
use docent::Queue;
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon, within};
use futures_util::{StreamExt, TryStreamExt};
use std::time::Duration;

both_backends! {
    async fn a_stream_yields_new_items_and_ends_when_the_client_is_closed(backend: Backend) {
        let server = backend.start().await;
        let (client, producer) = (connect(&server).await, connect(&server).await);
        let (jobs, producer) = (queue(&client), queue(&producer));
        producer.put_all(&[0, 1]).await.unwrap();
        let mut deliveries = jobs.deliveries();
        for item in 0..6 {
            if item > 1 {
                producer.put(&item).await.unwrap();
            }
            let delivery = soon(deliveries.try_next()).await.unwrap().unwrap();
            assert_eq!(*delivery.item(), item);
            soon(delivery.ack()).await.unwrap();
        }
        // The stream continues in a new session.
        server.expire(client.session_id().unwrap()).await.unwrap();
        producer.put(&6).await.unwrap();
        let delivery = soon(deliveries.try_next()).await.unwrap().unwrap();
        assert_eq!((*delivery.item(), delivery.is_held()), (6, true));
        let end = async { tokio::join!(deliveries.next(), client.close()).0 };
        assert!(soon(end).await.is_none());
        assert!(soon(deliveries.next()).await.is_none(), "the stream must stay ended");
    }

    async fn prefetched_items_are_in_order_and_return_uncounted_if_not_polled(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs: Queue<u64> = crate::jobs::builder(&client).prefetch(3).build().unwrap();
        let other = queue(&other);
        jobs.put_all(&(0..8).collect::<Vec<_>>()).await.unwrap();
        let mut deliveries = jobs.deliveries();
        let first = soon(deliveries.try_next()).await.unwrap().unwrap();
        assert_eq!((*first.item(), first.deliveries()), (0, Some(1)));
        // The next two items wait for this consumer. Another consumer overtakes them.
        let third = soon(other.take()).await.unwrap();
        assert_eq!(*third.item(), 3);
        let second = soon(deliveries.try_next()).await.unwrap().unwrap();
        assert_eq!(*second.item(), 1);
        soon(first.ack()).await.unwrap();
        soon(second.ack()).await.unwrap();
        drop(deliveries);
        let back = soon(async {
            loop {
                let delivery = other.take().await.unwrap();
                if *delivery.item() == 2 {
                    break delivery;
                }
                delivery.ack().await.unwrap();
            }
        }).await;
        assert_eq!(back.deliveries(), Some(1), "no consumer received the item before");
        drop((back, third));
    }

    async fn prefetched_items_whose_claim_is_lost_are_skipped(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = crate::jobs::builder(&client).prefetch(3).build().unwrap();
        jobs.put_all(&[0, 1, 2]).await.unwrap();
        let mut deliveries = jobs.deliveries();
        let first = soon(deliveries.try_next()).await.unwrap().unwrap();
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(first.lost()).await;
        for item in 0..3 {
            let delivery = soon(deliveries.try_next()).await.unwrap().unwrap();
            // Of the first consumer's items, only the first was handed out.
            let count = if item == 0 { 2 } else { 1 };
            assert_eq!((*delivery.item(), delivery.deliveries()), (item, Some(count)));
            soon(delivery.ack()).await.unwrap();
        }
    }

    async fn a_prefetched_item_that_is_deleted_by_hand_blocks_no_later_item(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = crate::jobs::builder(&client).prefetch(3).build().unwrap();
        jobs.put_all(&[0, 1, 2]).await.unwrap();
        let mut deliveries = jobs.deliveries();
        let first = soon(deliveries.try_next()).await.unwrap().unwrap();
        client.delete(&format!("{}/items/item-0000000001", jobs.path()), None).await.unwrap();
        // Items that no call asks for are given back after two seconds.
        let next = within(Duration::from_secs(1), deliveries.try_next()).await.unwrap().unwrap();
        assert_eq!((*first.item(), *next.item(), next.deliveries()), (0, 2, Some(1)));
    }

    async fn a_batch_that_does_not_fit_into_one_request_is_a_smaller_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = Queue::new(&client, &format!("/{}", "q".repeat(400))).unwrap();
        for _ in 0..2 {
            jobs.put_all(&(0..500).collect::<Vec<_>>()).await.unwrap();
        }
        let batch = soon(jobs.take_batch(1_000)).await.unwrap();
        assert!(batch.len() >= 250, "{} items", batch.len());
        assert!(batch.iter().all(|delivery| delivery.deliveries() == Some(1)));
    }
}
