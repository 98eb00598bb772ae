//! Items that no consumer can process.

use crate::jobs::{QUEUE, drain, queue, take};
use bytes::Bytes;
use docent::node::{Acl, Permissions};
use docent::queue::{Codec, CodecError, DeadReason, PeekError, PutError, Raw};
use docent::{CreateMode, Error, ErrorKind, Queue};
use docent_battery::{Backend, Direction, both_backends};
use docent_tests::{builder, connect, soon, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A codec that panics at 13.
struct Fragile;

impl Codec<u64> for Fragile {
    fn encode(&self, item: &u64) -> Result<Bytes, CodecError> {
        Ok(Bytes::copy_from_slice(&item.to_be_bytes()))
    }

    fn decode(&self, data: &Bytes) -> Result<u64, CodecError> {
        let item = u64::from_be_bytes(data[..].try_into().unwrap());
        assert!(item != 13, "cannot decode 13");
        Ok(item)
    }
}

both_backends! {
    async fn a_poison_item_is_handed_out_up_to_the_limit_and_then_becomes_a_dead_letter(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs: Queue<u64> = crate::jobs::builder(&client).max_deliveries(3).build().unwrap();
        let other: Queue<u64> = Queue::builder(&other, QUEUE).max_deliveries(3).build().unwrap();
        jobs.put_all(&[1, 2]).await.unwrap();
        for count in 1..=3 {
            let queue = if count % 2 == 0 { &other } else { &jobs };
            let delivery = take(queue).await;
            assert_eq!((*delivery.item(), delivery.deliveries()), (1, Some(count)));
            soon(delivery.nack_now()).await.unwrap();
        }
        assert_eq!(drain(&other).await, [2]);
        let letters = jobs.dead_letters().list().await.unwrap();
        let [letter] = letters.as_slice() else { panic!("{letters:?}") };
        assert_eq!((&letter.reason, letter.deliveries), (&DeadReason::TooManyDeliveries, Some(3)));
        assert_eq!(letter.item, "item-0000000000");
        assert!(letter.detail.contains("3 times"), "{letter:?}");
        assert_eq!(letter.data[..], *b"\xd0\xce\x00\x01\x00\x00\x00\x001");
    }

    async fn an_undecodable_item_becomes_one_dead_letter_and_blocks_no_consumer(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        let raw: Queue<Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        jobs.put(&1).await.unwrap();
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        for bad in ["", "x", "{\"a\":1}", "-1", "1.5", "\u{feff}1", "18446744073709551616", "\"hunter2\"", &deep] {
            raw.put(&Bytes::copy_from_slice(bad.as_bytes())).await.unwrap();
        }
        raw.put(&Bytes::from_static(b"\xff\xfe")).await.unwrap();
        for bad in [&b""[..], b"\xd0", b"\xd0\xce\x00\x021", b"1", b"\x00\x01\x00\x01"] {
            let path = format!("{QUEUE}/items/item-");
            client.create(&path, Bytes::copy_from_slice(bad), CreateMode::PersistentSequential).await.unwrap();
        }
        jobs.put(&2).await.unwrap();
        let first = take(&jobs).await;
        let error = jobs.peek().await.unwrap_err();
        assert!(matches!(&error, PeekError::Undecodable { item, .. } if item == "item-0000000001"), "{error:?}");
        assert_eq!(drain(&jobs).await, [2]);
        drop(first);
        assert_eq!(drain(&jobs).await, [1]);
        let letters = jobs.dead_letters().list().await.unwrap();
        assert_eq!(letters.len(), 15);
        assert!(letters.iter().all(|one| one.reason == DeadReason::Undecodable && one.deliveries == Some(0)));
        assert!(letters.iter().all(|one| !one.detail.is_empty() && one.detail.len() <= 500), "{letters:?}");
        assert!(letters.iter().any(|one| one.detail.contains("format version is 2")), "{letters:?}");
        let text = format!("{letters:?}");
        assert!(!text.contains("[[[[") && !text.contains("hunter2"), "a dead letter prints its payload: {text}");
    }

    async fn items_of_another_program_stay_in_the_queue(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let patience = Duration::from_secs(5);
        let jobs: Queue<u64> = crate::jobs::builder(&client).undecodable_after(patience).build().unwrap();
        jobs.put(&1).await.unwrap();
        assert_eq!(drain(&jobs).await, [1]);
        let curator = b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x02";
        let put = async |data: &'static [u8], count: usize| {
            for _ in 0..count {
                let path = format!("{QUEUE}/items/item-");
                client.create(&path, Bytes::from_static(data), CreateMode::PersistentSequential).await.unwrap();
            }
        };
        put(curator, 25).await;
        let began = Instant::now();
        // Also when the patience with the first items has ended.
        while began.elapsed() < patience * 2 {
            let error = soon(jobs.take()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            let text = error.to_string();
            assert!(text.contains(&format!("{QUEUE:?}")) && text.contains("\"item-0000000001\""), "{text}");
            assert!(text.contains("the data is not a queue item"), "{text}");
            docent_tests::pause().await;
        }
        let error = soon(jobs.consume(async |_: &u64| Ok::<_, Error>(()))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!((jobs.len().await.unwrap(), jobs.dead_letters().list().await.unwrap().len()), (25, 0));
        jobs.purge().await.unwrap();
        let hasty: Queue<u64> =
            crate::jobs::builder(&client).undecodable_after(Duration::from_millis(100)).build().unwrap();
        // A newer version of the queue's format is no other format, and few items are no other program.
        jobs.put(&2).await.unwrap();
        assert_eq!(drain(&jobs).await, [2]);
        put(b"\xd0\xce\x00\x02a", 12).await;
        put(curator, 9).await;
        until(async || {
            assert!(soon(hasty.take_timeout(Duration::from_millis(100))).await.unwrap().is_none());
            jobs.dead_letters().list().await.unwrap().len() == 21
        })
        .await;
    }

    async fn a_dead_letter_can_be_requeued_once_deleted_and_purged(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> =
            crate::jobs::builder(&client).max_deliveries(1).dead_letters("/elsewhere/dead").build().unwrap();
        jobs.put_all(&[1, 2, 3, 4]).await.unwrap();
        for _ in 0..4 {
            let batch = soon(jobs.take_batch(4)).await.unwrap();
            drop(batch);
            if soon(jobs.try_take()).await.unwrap().is_none() { break }
        }
        let dead = jobs.dead_letters();
        let letters = dead.list().await.unwrap();
        assert_eq!(letters.len(), 4);
        assert!(jobs.is_empty().await.unwrap());
        dead.requeue(&letters[1]).await.unwrap();
        assert_eq!(dead.requeue(&letters[1]).await.unwrap_err().kind(), ErrorKind::NoNode);
        let again = take(&jobs).await;
        assert_eq!((*again.item(), again.deliveries()), (2, Some(1)));
        soon(again.ack()).await.unwrap();
        dead.delete(&letters[0]).await.unwrap();
        dead.delete(&letters[0]).await.unwrap();
        client.create("/elsewhere/dead/foreign", "x", CreateMode::Persistent).await.unwrap();
        client.create("/elsewhere/dead/letter-0000000099", "x", CreateMode::Persistent).await.unwrap();
        assert_eq!(dead.list().await.unwrap().iter().map(|one| &one.item).collect::<Vec<_>>(), [
            "item-0000000002", "item-0000000003", ""
        ], "unreadable letters must be listed too");
        assert_eq!((dead.purge().await.unwrap(), dead.is_empty().await.unwrap()), (3, true));
        assert!(client.exists("/elsewhere/dead/foreign").await.unwrap().is_some());
    }

    async fn an_item_that_cannot_become_a_dead_letter_stays_and_blocks_no_consumer(backend: Backend) {
        let server = backend.start().await;
        let (client, limited) = (connect(&server).await, builder(&server, server.connect_string())
            .max_request(10_000).connect().await.unwrap());
        let large: Queue<Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        let jobs = queue(&limited);
        large.put(&vec![b'x'; 20_000].into()).await.unwrap();
        jobs.put_all(&[1, 2]).await.unwrap();
        assert_eq!(drain(&jobs).await, [1, 2]);
        assert_eq!((jobs.len().await.unwrap(), jobs.dead_letters().len().await.unwrap()), (1, 0));
        assert_eq!(drain(&queue(&client)).await, [0; 0]);
        assert_eq!(jobs.dead_letters().len().await.unwrap(), 1);
    }

    async fn an_item_without_a_limit_is_redelivered_indefinitely(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = crate::jobs::builder(&client).unlimited_deliveries().build().unwrap();
        jobs.put(&1).await.unwrap();
        for count in 1..=40 {
            assert_eq!(take(&jobs).await.deliveries(), Some(count));
        }
        assert!(jobs.dead_letters().is_empty().await.unwrap());
    }

    async fn an_item_whose_dead_letters_may_not_be_written_stays_and_blocks_no_consumer(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/closed", "", CreateMode::Persistent).await.unwrap();
        let readable = Acl::new(Permissions::READ | Permissions::ADMIN, "world", "anyone");
        client.set_acl("/closed", [readable], None).await.unwrap();
        let raw: Queue<Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        raw.put(&Bytes::from_static(b"x")).await.unwrap();
        let jobs: Queue<u64> = crate::jobs::builder(&client).dead_letters("/closed/dead").build().unwrap();
        jobs.put_all(&[1, 2]).await.unwrap();
        // The item cannot be moved alone or in a batch. The other items of the batch are handed out.
        let batch = soon(jobs.take_batch(3)).await.unwrap();
        assert_eq!(batch.iter().map(|one| (*one.item(), one.deliveries())).collect::<Vec<_>>(), [
            (1, Some(1)), (2, Some(1))
        ]);
        for one in batch {
            soon(one.nack_now()).await.unwrap();
        }
        assert_eq!(drain(&jobs).await, [1, 2]);
        assert_eq!(raw.len().await.unwrap(), 1);
        let ordered: Queue<u64> =
            crate::jobs::builder(&client).ordered().dead_letters("/closed/dead").build().unwrap();
        ordered.put(&3).await.unwrap();
        // In ordered mode the item blocks the others, because the order is strict. The move is retried and
        // succeeds with the permission.
        assert_eq!(drain(&ordered).await, [0; 0]);
        client.set_acl("/closed", [Acl::open_unsafe()], None).await.unwrap();
        assert_eq!(*soon(ordered.take()).await.unwrap().item(), 3);
        assert_eq!(ordered.dead_letters().len().await.unwrap(), 1);
    }

    async fn an_item_whose_decoder_panics_is_one_that_cannot_be_decoded(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = Queue::builder_with(&client, QUEUE, Fragile).undecodable_after(Duration::ZERO).build().unwrap();
        let raw: Queue<Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        raw.put_all(&[1_u64, 13, 2].map(|item| Bytes::copy_from_slice(&item.to_be_bytes()))).await.unwrap();
        let error = jobs.put(&13).await.unwrap_err();
        assert!(matches!(error, PutError::Unreadable(_)), "{error:?}");
        let mut items = Vec::new();
        while let Some(delivery) = soon(jobs.try_take()).await.unwrap() {
            items.push(*delivery.item());
            soon(delivery.ack()).await.unwrap();
        }
        assert_eq!(items, [1, 2]);
        let letters = jobs.dead_letters().list().await.unwrap();
        let [letter] = letters.as_slice() else { panic!("{letters:?}") };
        assert_eq!((&letter.reason, letter.deliveries), (&DeadReason::Undecodable, Some(0)));
        assert!(letter.detail.contains("panicked"), "{letter:?}");
    }

    async fn a_process_that_is_always_busy_moves_undecodable_items_to_the_dead_letters(backend: Backend) {
        const ITEMS: u64 = 5_000;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let producer = connect(&server).await;
        let raw: Queue<Bytes> = Queue::builder_with(&producer, QUEUE, Raw).build().unwrap();
        queue(&producer).put_all(&(0..1_000).collect::<Vec<_>>()).await.unwrap();
        raw.put(&Bytes::from_static(b"x")).await.unwrap();
        queue(&producer).put_all(&(1_000..ITEMS).collect::<Vec<_>>()).await.unwrap();
        proxy.set_delay(Direction::ToClient, Duration::from_millis(30));
        let jobs = queue(&client);
        let done = Arc::new(AtomicU64::new(0));
        // The consumers have different speeds, so one of them wants an item at any time.
        let mut consumers = JoinSet::new();
        for pause in 1..=200 {
            let (jobs, done) = (jobs.clone(), Arc::clone(&done));
            consumers.spawn(async move {
                loop {
                    let delivery = jobs.take().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    delivery.ack().await.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        until(async || queue(&producer).dead_letters().len().await.unwrap() == 1).await;
        let done = done.load(Ordering::Relaxed);
        assert!(done < ITEMS / 2, "moved to the dead letters only after {done} items");
        consumers.shutdown().await;
    }
}
