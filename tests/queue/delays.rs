//! Items that are handed out later.

use crate::jobs::{A_WHILE, QUEUE, drain, finish, queue, take};
use crate::options::{later, ordered};
use crate::versions::{PROMPTLY, new_kind, of};
use docent::queue::PutOptions;
use docent::{ErrorKind, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon, within};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

both_backends! {
    async fn an_item_that_is_given_back_is_redelivered_after_a_growing_delay(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = Queue::builder(&client, QUEUE)
            .redelivery_delay(A_WHILE, A_WHILE * 4)
            .build()
            .unwrap();
        jobs.put(&1).await.unwrap();
        for (count, factor) in [(1, 1), (2, 2), (3, 4), (4, 4)] {
            let delivery = soon(jobs.take()).await.unwrap();
            assert_eq!(delivery.deliveries(), Some(count));
            let given_back = Instant::now();
            match count {
                3 => drop(delivery),
                _ => delivery.nack().unwrap(),
            }
            assert!(jobs.try_take().await.unwrap().is_none());
            let again = soon(jobs.take()).await.unwrap();
            assert!(given_back.elapsed() >= A_WHILE * factor, "{:?} after delivery {count}", given_back.elapsed());
            assert_eq!(again.deliveries(), Some(count + 1));
            // The item returns with its count of hand-outs.
            soon(again.put_back(PutOptions::new())).await.unwrap();
            let next = soon(jobs.take()).await.unwrap();
            assert_eq!(next.deliveries(), Some(count + 2));
            soon(next.ack()).await.unwrap();
            jobs.put(&1).await.unwrap();
            for _ in 0..count {
                soon(take(&jobs).await.nack_now()).await.unwrap();
            }
        }
    }

    async fn a_delayed_item_is_handed_out_at_its_time_to_a_waiting_consumer(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for jobs in [queue(&client), ordered(&client)] {
            let put = Instant::now();
            jobs.put_with(&1, later()).await.unwrap();
            jobs.put(&2).await.unwrap();
            let mut taken = Vec::new();
            for _ in 0..2 {
                let delivery = soon(jobs.take()).await.unwrap();
                // A machine that is busy until the delay is over may hand out the delayed item first.
                assert!(*delivery.item() == 2 || put.elapsed() >= A_WHILE, "{:?}", put.elapsed());
                taken.push((*delivery.item(), delivery.deliveries()));
                soon(delivery.ack()).await.unwrap();
            }
            taken.sort_unstable();
            assert_eq!(taken, [(1, Some(1)), (2, Some(1))]);
            assert_eq!(jobs.len().await.unwrap(), 0);
        }
    }

    async fn delayed_items_are_delivered_in_the_order_of_their_times_and_before_later_ones(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_with(&1, PutOptions::new().delay(A_WHILE * 2)).await.unwrap();
        jobs.put_with(&2, later()).await.unwrap();
        jobs.put(&3).await.unwrap();
        tokio::time::sleep(A_WHILE * 3).await;
        assert_eq!(drain(&jobs).await, [2, 1, 3]);
    }

    async fn an_item_can_be_moved_and_keeps_its_count(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        let first = take(&jobs).await;
        let name = first.name().to_owned();
        assert!(!jobs.reschedule(&name, PutOptions::new()).await.unwrap(), "the item is claimed");
        soon(first.put_back(PutOptions::new().priority(9))).await.unwrap();
        let listed = jobs.list().await.unwrap();
        let shown: Vec<_> = listed.iter().map(|item| (item.priority, item.due.is_some(), item.is_claimed)).collect();
        assert_eq!(shown, [(0, false, false), (9, false, false)]);
        assert!(!jobs.reschedule(&name, PutOptions::new()).await.unwrap(), "the item has another name now");
        assert!(jobs.reschedule(&listed[0].name, later()).await.unwrap());
        let moved = take(&jobs).await;
        assert_eq!((*moved.item(), moved.deliveries()), (1, Some(2)));
        assert!(jobs.list().await.unwrap().iter().any(|item| item.is_claimed && item.name == moved.name()));
        let second = soon(jobs.take()).await.unwrap();
        assert_eq!((*second.item(), second.deliveries()), (2, Some(1)));
        for one in [moved, second] {
            soon(one.ack()).await.unwrap();
        }
        assert!(jobs.is_empty().await.unwrap());
        let error = jobs.reschedule("stranger", PutOptions::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    async fn an_item_given_back_with_a_delay_is_overtaken_and_then_delivered_first(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (queue, other) = (queue(&client), queue(&other));
        queue.put_all(&[1, 2, 3]).await.unwrap();
        take(&queue).await.nack_after(A_WHILE).unwrap();
        assert_eq!(finish(&queue).await, 2);
        let third = soon(other.take()).await.unwrap();
        assert_eq!(*third.item(), 3);
        // The other consumer now waits for the end of the delay.
        let first = soon(other.take()).await.unwrap();
        assert_eq!(*first.item(), 1);
        soon(third.nack_now()).await.unwrap();
        assert_eq!(first.deliveries(), Some(2));
        soon(first.ack()).await.unwrap();
        // The delay outlives the client.
        take(&queue).await.nack_after(Duration::from_secs(3600)).unwrap();
        soon(client.close()).await;
        assert!(soon(other.try_take()).await.unwrap().is_none());
        assert_eq!(other.len().await.unwrap(), 1);
    }

    async fn in_ordered_mode_a_delayed_item_precedes_one_left_to_other_consumers(backend: Backend) {
        let server = backend.start().await;
        let (newer, older) = (connect(&server).await, connect(&server).await);
        let patience = Duration::from_secs(60);
        let newer = of::<Value>(&newer, patience).ordered().build().unwrap();
        let older = of::<u64>(&older, patience).ordered().build().unwrap();
        newer.put_with(&json!(7), PutOptions::new().delay(Duration::from_secs(2))).await.unwrap();
        newer.put(&new_kind()).await.unwrap();
        let taken = within(PROMPTLY, older.take()).await.unwrap();
        assert_eq!(*taken.item(), 7);
        taken.ack().await.unwrap();
    }
}
