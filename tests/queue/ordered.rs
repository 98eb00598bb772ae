//! One consumer at a time.

use crate::jobs::{A_WHILE, QUEUE};
use docent::queue::DeadReason;
use docent::{Client, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, in_time, soon, until, within};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::Instant;

fn ordered(client: &Client) -> Queue<u64> {
    crate::jobs::builder(client).ordered().max_deliveries(3).build().unwrap()
}

both_backends! {
    async fn the_next_item_is_delivered_after_the_previous_one_was_acknowledged(backend: Backend) {
        let server = backend.start().await;
        let (here, there) = (connect(&server).await, connect(&server).await);
        let (here, there) = (ordered(&here), ordered(&there));
        here.put_all(&[1, 2, 3]).await.unwrap();
        let first = soon(here.take()).await.unwrap();
        assert_eq!((*first.item(), first.deliveries()), (1, Some(1)));
        assert!(there.try_take().await.unwrap().is_none() && here.try_take().await.unwrap().is_none());
        let take = tokio::spawn({ let there = there.clone(); async move { there.take().await } });
        tokio::time::sleep(A_WHILE).await;
        assert!(!take.is_finished());
        // After it is given back, the item is first again, for the next consumer.
        soon(first.nack_now()).await.unwrap();
        let again = soon(take).await.unwrap().unwrap();
        assert_eq!((*again.item(), again.deliveries()), (1, Some(2)));
        soon(again.ack()).await.unwrap();
        for item in [2, 3] {
            let batch = soon(here.take_batch(5)).await.unwrap();
            assert_eq!(batch.iter().map(|one| *one.item()).collect::<Vec<_>>(), [item]);
            soon(docent::Delivery::ack_all(batch)).await.unwrap();
        }
        assert!(here.is_empty().await.unwrap());
    }

    async fn a_stream_that_is_not_polled_does_not_block_the_queue(backend: Backend) {
        let server = backend.start().await;
        let (idle, client) = (connect(&server).await, connect(&server).await);
        let jobs = ordered(&client);
        let streams = [ordered(&idle), ordered(&idle)];
        let mut streams: Vec<_> = streams.iter().map(Queue::deliveries).collect();
        // Both streams wait, the first one with the lock. From here on, neither is polled.
        for stream in &mut streams {
            assert!(futures_util::poll!(stream.next()).is_pending());
        }
        until(async || client.children(&format!("{QUEUE}/lock")).await.is_ok_and(|line| line.names.len() == 2)).await;
        jobs.put_all(&[1, 2]).await.unwrap();
        for item in [1, 2] {
            // Each stream may have held the item for two seconds.
            let taken = within(Duration::from_secs(10), jobs.take()).await.unwrap();
            assert_eq!((*taken.item(), taken.deliveries()), (item, Some(1)));
            soon(taken.ack()).await.unwrap();
        }
        // The streams take part again as soon as they are polled.
        jobs.put(&3).await.unwrap();
        let taken = soon(streams[0].next()).await.unwrap().unwrap();
        assert_eq!((*taken.item(), taken.deliveries()), (3, Some(1)));
        soon(taken.ack()).await.unwrap();
    }

    async fn a_take_that_is_cancelled_leaves_no_place_in_the_line_of_the_lock(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = ordered(&client);
        let line = || async { client.children(&format!("{QUEUE}/lock")).await.map_or(0, |line| line.names.len()) };
        let mut take = Box::pin(jobs.take());
        assert!(futures_util::poll!(&mut take).is_pending());
        until(async || line().await == 1).await;
        drop(take);
        until(async || line().await == 0).await;
    }

    async fn a_consumer_that_dies_hands_its_item_to_the_next(backend: Backend) {
        let server = backend.start().await;
        let waiting = ordered(&connect(&server).await);
        in_time(Duration::from_secs(1), async || {
            let crashing = connect(&server).await;
            let jobs = ordered(&crashing);
            jobs.put(&1).await.unwrap();
            let lost = soon(jobs.take()).await.unwrap();
            let take = tokio::spawn({ let waiting = waiting.clone(); async move { waiting.take().await } });
            tokio::time::sleep(A_WHILE).await;
            server.expire(crashing.session_id().unwrap()).await.unwrap();
            let expired = Instant::now();
            let again = soon(take).await.unwrap().unwrap();
            let took = expired.elapsed();
            assert_eq!((*again.item(), again.deliveries()), (1, Some(2)));
            assert!(again.fence() > lost.fence());
            assert!(soon(lost.ack()).await.is_err());
            soon(again.ack()).await.unwrap();
            took
        })
        .await;
    }

    async fn a_waiting_consumer_gets_new_items_and_too_many_deliveries_make_a_dead_letter(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = ordered(&client);
        let take = tokio::spawn({ let jobs = jobs.clone(); async move { jobs.take().await } });
        tokio::time::sleep(A_WHILE).await;
        jobs.put(&1).await.unwrap();
        drop(soon(take).await.unwrap().unwrap());
        for count in [2, 3] {
            let delivery = soon(jobs.take()).await.unwrap();
            assert_eq!(delivery.deliveries(), Some(count));
            delivery.nack_after(Duration::from_millis(20)).unwrap();
        }
        jobs.put(&2).await.unwrap();
        let second = soon(jobs.take()).await.unwrap();
        assert_eq!((*second.item(), second.deliveries()), (2, Some(1)));
        let letters = jobs.dead_letters().list().await.unwrap();
        assert_eq!((letters.len(), &letters[0].reason), (1, &DeadReason::TooManyDeliveries));
        soon(second.ack()).await.unwrap();
    }

    async fn an_ephemeral_item_is_deleted_with_its_producers_session(backend: Backend) {
        let server = backend.start().await;
        let (dying, living) = (connect(&server).await, connect(&server).await);
        let (producer, jobs) = (ordered(&dying), ordered(&living));
        producer.put_ephemeral(&1).await.unwrap();
        producer.put(&2).await.unwrap();
        jobs.put_ephemeral(&3).await.unwrap();
        let first = soon(jobs.take()).await.unwrap();
        assert_eq!(*first.item(), 1);
        server.expire(dying.session_id().unwrap()).await.unwrap();
        // The item is deleted while a consumer works on it, and the acknowledgement reports that.
        soon(async {
            while jobs.len().await.unwrap() == 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }).await;
        assert!(soon(first.ack()).await.is_err());
        for item in [2, 3] {
            let delivery = soon(jobs.take()).await.unwrap();
            assert_eq!(*delivery.item(), item);
            soon(delivery.ack()).await.unwrap();
        }
        assert!(jobs.is_empty().await.unwrap());
    }
}
