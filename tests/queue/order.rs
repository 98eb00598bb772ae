//! The order in which items are handed out, and items that are given back.

use crate::jobs::{QUEUE, drain, finish, queue, take};
use docent::queue::{AckError, QueueLayout};
use docent::{CreateMode, ErrorKind, LostReason, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};
use std::pin::pin;

both_backends! {
    async fn items_are_handed_out_in_the_order_in_which_they_were_put(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let queue = queue(&client);
        assert!(queue.try_take().await.unwrap().is_none() && queue.is_empty().await.unwrap());
        for item in 0..5 {
            queue.put(&item).await.unwrap();
        }
        queue.put_all(&[5, 6, 7]).await.unwrap();
        assert_eq!(queue.len().await.unwrap(), 8);
        assert_eq!(drain(&queue).await, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(queue.is_empty().await.unwrap());
    }

    async fn several_producers_lose_and_double_nothing(backend: Backend) {
        let server = backend.start().await;
        let (one, two) = (connect(&server).await, connect(&server).await);
        let (one, two) = (queue(&one), queue(&two));
        let put = |queue: Queue<u64>, from: u64| async move {
            for item in from..from + 20 {
                queue.put(&item).await.unwrap();
            }
        };
        tokio::join!(put(one.clone(), 0), put(two, 100));
        let items = drain(&one).await;
        let of = |from: u64| items.iter().copied().filter(|item| (from..from + 20).contains(item)).collect::<Vec<_>>();
        assert_eq!((of(0), of(100)), ((0..20).collect(), (100..120).collect()));
        assert_eq!(items.len(), 40);
    }

    async fn a_claimed_item_is_exclusive_and_returns_to_its_place(backend: Backend) {
        let server = backend.start().await;
        let (here, there) = (connect(&server).await, connect(&server).await);
        let (here, there) = (queue(&here), queue(&there));
        here.put_all(&[1, 2, 3]).await.unwrap();
        let first = take(&here).await;
        let second = take(&there).await;
        assert_eq!((*first.item(), *second.item()), (1, 2));
        assert_eq!((first.deliveries(), second.deliveries()), (Some(1), Some(1)));
        assert!(first.is_held() && first.verify().await.is_ok());
        assert_ne!(first.name(), second.name());
        // After the item is given back, dropped, or lost with the session, it is first again.
        let fence = first.fence();
        soon(first.nack_now()).await.unwrap();
        let again = take(&here).await;
        assert_eq!((*again.item(), again.deliveries()), (1, Some(2)));
        assert!(again.fence() > fence);
        drop(again);
        let again = take(&here).await;
        assert_eq!((*again.item(), again.deliveries()), (1, Some(3)));
        soon(again.ack()).await.unwrap();
        soon(second.ack()).await.unwrap();
        assert_eq!(drain(&there).await, [3]);
    }

    async fn a_consumer_with_known_items_soon_sees_an_item_that_another_gave_back(backend: Backend) {
        let server = backend.start().await;
        let (here, there) = (connect(&server).await, connect(&server).await);
        let (here, there) = (queue(&here), queue(&there));
        here.put_all(&(0..1_000).collect::<Vec<_>>()).await.unwrap();
        let first = take(&there).await;
        assert_eq!(finish(&here).await, 1);
        soon(first.nack_now()).await.unwrap();
        for count in 1.. {
            if finish(&here).await == 0 {
                break;
            }
            assert!(count < 900, "the items must come to an end");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    async fn a_batch_is_claimed_in_one_write_and_acknowledged_in_one(backend: Backend) {
        use docent_proto::OpCode;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (queue, other) = (queue(&client), queue(&other));
        queue.put_all(&(0..10).collect::<Vec<_>>()).await.unwrap();
        let foreign = take(&other).await;
        let proxy = server.front();
        let before = proxy.trace().len();
        let batch = soon(queue.take_batch(4)).await.unwrap();
        let items = |batch: &[docent::Delivery<u64>]| batch.iter().map(|one| *one.item()).collect::<Vec<_>>();
        assert_eq!(items(&batch), [1, 2, 3, 4]);
        assert!(batch.iter().all(|one| one.deliveries() == Some(1)));
        soon(docent::Delivery::ack_all(batch)).await.unwrap();
        let trace = proxy.trace();
        let multis = trace[before..].iter().filter(|frame| frame.is_reply(OpCode::Multi)).count();
        assert_eq!(multis, 2, "{trace:#?}");
        assert_eq!(queue.len().await.unwrap(), 6);
        // A batch of more items than are present, one of which is lost: none is acknowledged.
        let mut batch = soon(queue.take_batch(100)).await.unwrap();
        assert_eq!(items(&batch), [5, 6, 7, 8, 9]);
        let lost = batch.pop().unwrap();
        let path = server.path(&lost.path()[1..]);
        let mut raw = server.client().await;
        raw.call(docent_proto::Request::Delete { path, version: -1 }).await.unwrap();
        assert_eq!(soon(lost.lost()).await, LostReason::NodeDeleted);
        batch.push(lost);
        let error = soon(docent::Delivery::ack_all(batch)).await.unwrap_err();
        assert!(matches!(error, AckError::Lost(lost) if lost.reason == LostReason::NodeDeleted), "{error:?}");
        drop(foreign);
        assert_eq!(soon(async {
            loop {
                let items = drain(&other).await;
                if items.len() > 5 { break items }
            }
        }).await, [0, 5, 6, 7, 8, 9]);
    }

    async fn peeking_and_counting_take_nothing_and_purging_leaves_claimed_items(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (queue, other) = (queue(&client), queue(&other));
        assert_eq!(queue.peek().await.unwrap(), None);
        assert_eq!(queue.purge().await.unwrap(), 0);
        queue.put_all(&[1, 2, 3]).await.unwrap();
        assert_eq!(queue.peek().await.unwrap(), Some(1));
        let first = take(&other).await;
        assert_eq!((queue.peek().await.unwrap(), queue.len().await.unwrap()), (Some(2), 3));
        assert_eq!(queue.purge().await.unwrap(), 2);
        assert_eq!((queue.peek().await.unwrap(), queue.len().await.unwrap()), (None, 1));
        assert_eq!(queue.reset().await.unwrap_err().kind(), ErrorKind::NotEmpty);
        soon(first.ack()).await.unwrap();
        queue.reset().await.unwrap();
        assert!(client.exists(&format!("{QUEUE}/items")).await.unwrap().is_none());
        queue.put(&4).await.unwrap();
        assert_eq!(take(&queue).await.name(), "item-0000000000");
    }

    async fn foreign_nodes_in_the_folder_are_ignored(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let queue = queue(&client);
        queue.put(&1).await.unwrap();
        for name in ["foo", "item-", "item-abc", "item-12345678901", "lock-0000000001", "-0000000001"] {
            client.create(&format!("{QUEUE}/items/{name}"), "x", CreateMode::Persistent).await.unwrap();
        }
        queue.put(&2).await.unwrap();
        assert_eq!(drain(&queue).await, [1, 2]);
        assert_eq!(queue.purge().await.unwrap(), 0);
        assert_eq!(client.children(&format!("{QUEUE}/items")).await.unwrap().names.len(), 6);
    }

    async fn a_returned_item_is_free_even_if_the_returning_call_is_not_polled(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let ordered: Queue<u64> = Queue::builder(&client, "/ordered").ordered().build().unwrap();
        for jobs in [queue(&client), ordered] {
            jobs.put(&1).await.unwrap();
            let mut giving_back = pin!(take(&jobs).await.nack_now());
            assert!(futures_util::poll!(giving_back.as_mut()).is_pending());
            // The future of `nack_now` is not polled meanwhile.
            let again = soon(jobs.take()).await.unwrap();
            assert_eq!((*again.item(), again.deliveries()), (1, Some(2)));
            soon(giving_back).await.unwrap();
            assert!(jobs.try_take().await.unwrap().is_none() && again.is_held());
            soon(again.ack()).await.unwrap();
        }
    }

    async fn the_number_of_the_next_item_can_be_derived_from_its_folder(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2, 3]).await.unwrap();
        client.create(&format!("{QUEUE}/items/foo"), "", CreateMode::Persistent).await.unwrap();
        assert_eq!(finish(&jobs).await, 1);
        take(&jobs).await.nack_now().await.unwrap();
        let folder = client.exists(&format!("{QUEUE}/items")).await.unwrap().unwrap();
        let next = (usize::try_from(folder.cversion).unwrap() + folder.num_children) / 2;
        jobs.put(&4).await.unwrap();
        jobs.purge().await.unwrap();
        jobs.put(&5).await.unwrap();
        let name = take(&jobs).await.name().to_owned();
        assert_eq!((name, next), ("item-0000000005".to_owned(), 4));
    }

    async fn concurrent_purges_count_only_their_own_deletes(backend: Backend) {
        let server = backend.start().await;
        let (here, there) = (connect(&server).await, connect(&server).await);
        let lock_path = "/locks".to_owned();
        for layout in [QueueLayout::Native, QueueLayout::Curator { lock_path }] {
            let of = |client| Queue::<u64>::builder(client, "/purged").layout(layout.clone()).build().unwrap();
            let (here, there) = (of(&here), of(&there));
            here.put_all(&(0..200).collect::<Vec<_>>()).await.unwrap();
            let held = take(&there).await;
            let (one, other) = soon(async { tokio::join!(here.purge(), there.purge()) }).await;
            assert_eq!(one.unwrap() + other.unwrap(), 199);
            soon(held.ack()).await.unwrap();
            assert_eq!(drain(&here).await, [0; 0]);
        }
    }
}
