//! Delays, priorities, and the other ways that an item can take.

use crate::jobs::{A_WHILE, QUEUE, builder, drain, queue, take};
use docent::queue::{AckError, DeadReason, PutError, PutOptions, QueueLayout, Raw};
use docent::{Client, CreateMode, ErrorKind, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon, until};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) fn later() -> PutOptions {
    PutOptions::new().delay(A_WHILE)
}

pub(crate) fn ordered(client: &Client) -> Queue<u64> {
    builder(client).ordered().build().unwrap()
}

both_backends! {
    async fn lower_priorities_are_handed_out_first_in_either_mode(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for jobs in [queue(&client), ordered(&client)] {
            jobs.put_with(&1, PutOptions::new().priority(5)).await.unwrap();
            jobs.put(&2).await.unwrap();
            jobs.put_with(&3, PutOptions::new().priority(-5)).await.unwrap();
            jobs.put_all_with(&[4, 5], PutOptions::new().priority(-5)).await.unwrap();
            assert_eq!(jobs.peek().await.unwrap(), Some(3));
            assert_eq!(drain(&jobs).await, [3, 4, 5, 2, 1]);
        }
    }

    async fn in_ordered_mode_items_are_moved_by_their_deliveries_and_ephemeral_ones_stay(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = ordered(&client);
        jobs.put_ephemeral(&1).await.unwrap();
        jobs.put_all(&[2, 3]).await.unwrap();
        let listed = jobs.list().await.unwrap();
        let error = jobs.reschedule(&listed[0].name, PutOptions::new().priority(1)).await.unwrap_err();
        assert!(error.to_string().contains("ordered mode"), "{error}");
        let error = soon(take(&jobs).await.put_back(PutOptions::new().priority(1))).await.unwrap_err();
        assert!(error.to_string().contains("ephemeral item must keep its place"), "{error}");
        soon(soon(jobs.take()).await.unwrap().ack()).await.unwrap();
        soon(soon(jobs.take()).await.unwrap().put_back(PutOptions::new().priority(1))).await.unwrap();
        assert_eq!(drain(&jobs).await, [3, 2]);
    }

    async fn a_reset_takes_no_lock_from_the_consumer_of_an_item_put_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = ordered(&client);
        let tickets: Vec<_> = {
            let waiting = tokio::spawn({ let jobs = jobs.clone(); async move { jobs.take().await } });
            until(async || client.children(&format!("{QUEUE}/lock")).await.is_ok_and(|line| !line.names.is_empty())).await;
            jobs.reset().await.unwrap();
            jobs.put(&1).await.unwrap();
            let delivery = soon(waiting).await.unwrap().unwrap();
            // The queue has an item now.
            assert_eq!(jobs.reset().await.unwrap_err().kind(), ErrorKind::NotEmpty);
            assert!(delivery.verify().await.is_ok());
            soon(delivery.ack()).await.unwrap();
            client.children(&format!("{QUEUE}/lock")).await.map_or_else(|_| Vec::new(), |line| line.names)
        };
        assert!(tickets.is_empty(), "{tickets:?}");
    }

    async fn an_acknowledgement_puts_into_another_queue_in_the_same_step(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        let done: Queue<String> = Queue::builder(&client, "/done").capacity(1).build().unwrap();
        jobs.put_all(&[1, 2, 3]).await.unwrap();
        soon(take(&jobs).await.ack_and_put(&done, &"one".to_owned())).await.unwrap();
        assert_eq!((jobs.len().await.unwrap(), done.len().await.unwrap()), (2, 1));
        let full = soon(take(&jobs).await.ack_and_put(&done, &"two".to_owned())).await.unwrap_err();
        assert!(matches!(&full, AckError::Put(PutError::Full { .. })) && full.is_retryable(), "{full:?}");
        let foreign: Queue<u64> = Queue::new(&other, "/done").unwrap();
        let foreign = soon(take(&jobs).await.ack_and_put(&foreign, &2)).await.unwrap_err();
        assert!(!foreign.may_have_applied() && foreign.to_string().contains("same client"), "{foreign}");
        assert_eq!(soon(take(&jobs).await.into_item()).await.unwrap(), 2);
        let (item, delivery) = take(&jobs).await.into_parts();
        assert_eq!(item, 3);
        soon(delivery.ack()).await.unwrap();
        assert!(jobs.is_empty().await.unwrap());
    }

    async fn a_rejected_item_becomes_a_typed_dead_letter_that_can_be_requeued(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        soon(take(&jobs).await.nack_now()).await.unwrap();
        soon(take(&jobs).await.reject("no such customer")).await.unwrap();
        let dead = jobs.dead_letters();
        let letters = dead.list().await.unwrap();
        let [letter] = letters.as_slice() else { panic!("{letters:?}") };
        assert_eq!((&letter.reason, letter.detail.as_str()), (&DeadReason::Rejected, "no such customer"));
        assert_eq!((letter.deliveries, dead.decode(letter)), (Some(2), Ok(1)));
        dead.requeue_as(letter, &7).await.unwrap();
        assert_eq!((drain(&jobs).await, dead.len().await.unwrap()), (vec![2, 7], 0));
    }

    async fn letters_of_other_versions_are_listed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        let dead = format!("{QUEUE}/dead");
        client.create(&dead, "", CreateMode::Persistent).await.ok();
        for data in ["{\"version\":9,\"reason\":\"eaten\"}\nx", "junk"] {
            let path = format!("{dead}/letter-");
            if client.create(&path, data, CreateMode::PersistentSequential).await.is_err() {
                client.create(QUEUE, "", CreateMode::Persistent).await.unwrap();
                client.create(&dead, "", CreateMode::Persistent).await.unwrap();
                client.create(&path, data, CreateMode::PersistentSequential).await.unwrap();
            }
        }
        let letters = jobs.dead_letters().list().await.unwrap();
        let reasons: Vec<_> = letters.iter().map(|letter| letter.reason.clone()).collect();
        assert_eq!(reasons, [DeadReason::Other("eaten".to_owned()), DeadReason::Other(String::new())]);
        assert_eq!(jobs.dead_letters().len().await.unwrap(), 2);
    }

    async fn an_item_that_could_not_be_decoded_again_is_not_put(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let numbers: Queue<f64> = Queue::new(&client, QUEUE).unwrap();
        let error = soon(numbers.put(&f64::NAN)).await.unwrap_err();
        assert!(matches!(&error, PutError::Unreadable(_)) && !error.may_have_applied(), "{error:?}");
        soon(numbers.put(&1.5)).await.unwrap();
        assert_eq!(numbers.len().await.unwrap(), 1);
    }

    async fn an_item_that_one_consumer_cannot_decode_is_left_to_consumers_that_can(backend: Backend) {
        let server = backend.start().await;
        let (older, newer) = (connect(&server).await, connect(&server).await);
        let older: Queue<u64> = Queue::builder(&older, QUEUE).undecodable_after(A_WHILE * 5).build().unwrap();
        let newer: Queue<String> = Queue::new(&newer, QUEUE).unwrap();
        newer.put(&"of the next version".to_owned()).await.unwrap();
        older.put(&1).await.unwrap();
        assert_eq!(soon(soon(older.take()).await.unwrap().into_item()).await.unwrap(), 1);
        assert!(older.dead_letters().is_empty().await.unwrap());
        let delivery = soon(newer.take()).await.unwrap();
        assert_eq!(delivery.deliveries(), Some(1), "the item was handed out before");
        soon(delivery.ack()).await.unwrap();
        // After that time, a waiting consumer dead-letters an item that no consumer can decode.
        newer.put(&"of no version".to_owned()).await.unwrap();
        let put = Instant::now();
        let take = tokio::spawn(async move { older.take().await });
        until(async || newer.dead_letters().len().await.unwrap() == 1).await;
        assert!(put.elapsed() >= A_WHILE * 5, "{:?}", put.elapsed());
        take.abort();
    }

    async fn a_new_item_with_the_name_of_a_skipped_one_is_not_skipped(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/closed", "", CreateMode::Persistent).await.unwrap();
        client.set_acl("/closed", [docent::node::Acl::read_all()], None).await.unwrap();
        let jobs: Queue<u64> = builder(&client).dead_letters("/closed/dead").build().unwrap();
        let raw: Queue<bytes::Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        raw.put(&bytes::Bytes::from_static(b"x")).await.unwrap();
        assert!(soon(jobs.try_take()).await.unwrap().is_none());
        assert_eq!(raw.purge().await.unwrap(), 1);
        raw.reset().await.unwrap();
        jobs.put(&1).await.unwrap();
        assert_eq!(*take(&jobs).await.item(), 1);
    }

    async fn a_reset_restarts_every_number_and_leaves_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for jobs in [queue(&client), ordered(&client)] {
            jobs.put(&1).await.unwrap();
            assert_eq!(jobs.reset().await.unwrap_err().kind(), ErrorKind::NotEmpty);
            assert_eq!(drain(&jobs).await, [1]);
            assert!(soon(jobs.take_timeout(A_WHILE)).await.unwrap().is_none());
            jobs.reset().await.unwrap();
            // The servers may have deleted the empty container already.
            let children = client.children(QUEUE).await.map_or_else(|_| Vec::new(), |children| children.names);
            assert!(children.is_empty(), "{children:?}");
            jobs.put(&2).await.unwrap();
            let delivery = take(&jobs).await;
            assert_eq!((delivery.name(), *delivery.item()), ("item-0000000000", 2));
            soon(delivery.ack()).await.unwrap();
        }
    }

    async fn a_stream_without_permission_pauses_between_its_errors(backend: Backend) {
        use futures_util::StreamExt;
        let server = backend.start().await;
        let client = connect(&server).await;
        queue(&client).put(&1).await.unwrap();
        client.set_acl(&format!("{QUEUE}/items"), [docent::node::Acl::new(docent::node::Permissions::CREATE, "world", "anyone")], None).await.unwrap();
        let jobs = queue(&client);
        let began = Instant::now();
        let errors: Vec<_> = soon(jobs.deliveries().take(4).collect()).await;
        assert!(errors.iter().all(|error| error.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoAuth)));
        // Pauses of 200, 400 and 800 ms.
        assert!(began.elapsed() >= Duration::from_millis(1400), "{:?}", began.elapsed());
    }

    async fn attempts_for_an_unreadable_item_do_not_count_as_hand_outs(backend: Backend) {
        use docent::node::{Acl, Permissions};
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let item = format!("{QUEUE}/items/{}", jobs.list().await.unwrap()[0].name);
        let allow = async |permissions| client.set_acl(&item, [Acl::new(permissions, "world", "anyone")], None).await.unwrap();
        allow(Permissions::CREATE | Permissions::DELETE | Permissions::ADMIN).await;
        for _ in 0..20 {
            assert_eq!(jobs.try_take().await.unwrap_err().kind(), ErrorKind::NoAuth);
        }
        allow(Permissions::ALL).await;
        // The first attempt counts, because the client did not know yet that it may not read the item.
        assert_eq!(take(&jobs).await.deliveries(), Some(2));
    }

    async fn an_unreadable_item_does_not_block_the_items_before_it(backend: Backend) {
        use docent::node::{Acl, Permissions};
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&(0..40).collect::<Vec<_>>()).await.unwrap();
        let item = format!("{QUEUE}/items/{}", jobs.list().await.unwrap()[29].name);
        let permissions = Permissions::CREATE | Permissions::DELETE | Permissions::ADMIN;
        client.set_acl(&item, [Acl::new(permissions, "world", "anyone")], None).await.unwrap();
        let mut taken = Vec::new();
        while taken.len() < 29 {
            taken.extend(soon(jobs.take_batch(40)).await.unwrap());
        }
        assert_eq!(taken.iter().map(|one| *one.item()).collect::<Vec<_>>(), (0..29).collect::<Vec<_>>());
        assert!(taken.iter().all(|one| one.deliveries() <= Some(2)), "the first attempt may count once");
        assert_eq!(soon(jobs.take_batch(40)).await.unwrap_err().kind(), ErrorKind::NoAuth);
    }

    async fn curators_layout_has_no_delays_and_priorities(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let layout = QueueLayout::Curator { lock_path: "/locks".to_owned() };
        let jobs: Queue<u64> = Queue::builder(&client, QUEUE).layout(layout).build().unwrap();
        let error = soon(jobs.put_with(&1, later())).await.unwrap_err();
        assert!(error.to_string().contains("native layout"), "{error}");
        assert!(jobs.is_empty().await.unwrap());
    }
}
