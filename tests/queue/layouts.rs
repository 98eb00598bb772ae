//! Nodes of the queue, in each layout.

use crate::jobs::{A_WHILE, QUEUE, drain, queue, take};
use docent::queue::{DeadReason, QueueLayout};
use docent::{Client, CreateMode, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon, until, within};
use futures_util::StreamExt;
use std::time::Duration;

const LOCKS: &str = "/locks";

fn curator(client: &Client) -> Queue<String> {
    curator_at(client, QUEUE)
}

/// A queue at `path` with its claims in [`LOCKS`].
fn curator_at(client: &Client, path: &str) -> Queue<String> {
    let layout = QueueLayout::Curator { lock_path: LOCKS.to_owned() };
    let builder = Queue::builder(client, path).layout(layout);
    builder
        .redelivery_delay(Duration::ZERO, Duration::ZERO)
        .undecodable_after(Duration::ZERO)
        .build()
        .unwrap()
}

/// The places of idle consumers of the queue at `path`.
fn places(path: &str) -> String {
    format!("{LOCKS}/docent-..%2F{}/idle", &path[1..])
}

/// Curator's framing of one item.
fn framed(item: &[u8]) -> Vec<u8> {
    let mut frame = b"\x00\x01\x00\x01\x01".to_vec();
    frame.extend(u32::try_from(item.len()).unwrap().to_be_bytes());
    frame.extend(item);
    frame.push(2);
    frame
}

both_backends! {
    async fn the_native_layout_is_as_documented(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put(&42).await.unwrap();
        let item = format!("{QUEUE}/items/item-0000000000");
        let node = client.get(&item).await.unwrap();
        assert_eq!((node.data.as_ref(), node.stat.owner), (&b"\xd0\xce\x00\x01\0\0\0\x0042"[..], None));
        let delivery = take(&jobs).await;
        let claim = format!("{QUEUE}/claims/item-0000000000");
        assert_eq!(delivery.path(), claim);
        let claim = client.get(&claim).await.unwrap();
        assert_eq!((claim.stat.owner, claim.stat.version), (client.session_id(), 0));
        assert_eq!(claim.data.as_ref(), client.identity().as_bytes());
        let [proof] = &client.children(&item).await.unwrap().names[..] else { panic!("expected one proof") };
        assert!(proof.ends_with("-claim"), "{proof}");
        let proof = client.exists(&format!("{item}/{proof}")).await.unwrap().unwrap();
        assert_eq!((proof.owner, proof.czxid), (client.session_id(), claim.stat.czxid));
        soon(delivery.nack_now()).await.unwrap();
        let counted = client.exists(&item).await.unwrap().unwrap();
        assert_eq!((counted.num_children, counted.cversion), (0, 2));
        // Items that other clients create in the folder are taken.
        client.create(&format!("{QUEUE}/items/item-"), &b"\xd0\xce\x00\x01\0\0\0\x0043"[..], CreateMode::PersistentSequential).await.unwrap();
        assert_eq!(drain(&jobs).await, [42, 43]);
    }

    async fn the_version_of_a_claim_shows_whether_it_was_made_ahead_and_is_handed_out(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = Queue::<u64>::builder(&client, QUEUE).prefetch(2).build().unwrap();
        jobs.put_all(&[1, 2, 3]).await.unwrap();
        let mut stream = jobs.deliveries();
        let first = soon(stream.next()).await.unwrap().unwrap();
        let version = async |number: u32| {
            let claim = client.get(&format!("{QUEUE}/claims/item-000000000{number}")).await.unwrap();
            assert_eq!(claim.data.as_ref(), client.identity().as_bytes());
            claim.stat.version
        };
        let ahead = format!("{QUEUE}/claims/item-0000000001");
        until(async || client.exists(&ahead).await.unwrap().is_some()).await;
        assert_eq!((version(0).await, version(1).await), (0, 1));
        let second = soon(stream.next()).await.unwrap().unwrap();
        assert_eq!((*second.item(), version(1).await), (2, 2));
        drop(stream);
        soon(first.ack()).await.unwrap();
        soon(second.ack()).await.unwrap();
        assert_eq!(drain(&jobs).await, [3]);
    }

    async fn items_of_curators_queue_are_taken_under_its_locks_and_put_in_its_framing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = curator(&client);
        jobs.put(&"ours".to_owned()).await.unwrap();
        let item = format!("{QUEUE}/queue-0000000000");
        assert_eq!(client.get(&item).await.unwrap().data, framed(b"\"ours\""));
        client
            .create(&format!("{QUEUE}/queue-"), framed(b"\"theirs\""), CreateMode::PersistentSequential)
            .await
            .unwrap();
        let first = soon(jobs.take()).await.unwrap();
        assert_eq!((first.item().as_str(), first.deliveries()), ("ours", None));
        assert_eq!(first.path(), format!("{LOCKS}/queue-0000000000"));
        let lock = client.exists(&first.path()).await.unwrap().unwrap();
        // The lock node of a Curator consumer has version 0.
        assert_eq!((lock.owner, lock.version), (client.session_id(), 1));
        // An item that a Curator consumer has locked belongs to that consumer.
        client.create(&format!("{LOCKS}/queue-0000000001"), "", CreateMode::Ephemeral).await.unwrap();
        assert!(jobs.try_take().await.unwrap().is_none());
        assert_eq!((jobs.peek().await.unwrap(), jobs.purge().await.unwrap()), (None, 0));
        let take = tokio::spawn({ let jobs = jobs.clone(); async move { jobs.take().await } });
        tokio::time::sleep(A_WHILE).await;
        assert!(!take.is_finished());
        client.delete(&format!("{LOCKS}/queue-0000000001"), None).await.unwrap();
        let second = soon(take).await.unwrap().unwrap();
        assert_eq!(second.item(), "theirs");
        soon(second.ack()).await.unwrap();
        soon(first.nack_now()).await.unwrap();
        assert_eq!(jobs.peek().await.unwrap().as_deref(), Some("ours"));
        let first = soon(jobs.take()).await.unwrap();
        soon(first.ack()).await.unwrap();
        assert!(jobs.is_empty().await.unwrap());
        // The remaining lock of a deleted item does no harm.
        assert!(jobs.try_take().await.unwrap().is_none());
    }

    async fn an_item_without_curators_framing_becomes_a_dead_letter_and_foreign_nodes_stay(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = curator(&client);
        let two = b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02".to_vec();
        jobs.put(&"first".to_owned()).await.unwrap();
        for bad in [framed(b"x")[..8].to_vec(), b"".to_vec(), b"\x00\x01\x00\x02".to_vec(), two] {
            client.create(&format!("{QUEUE}/queue-"), bad, CreateMode::PersistentSequential).await.unwrap();
        }
        for foreign in ["queue-|id|0000000007", "queue-1000000050000000000", "foo"] {
            client.create(&format!("{QUEUE}/{foreign}"), framed(b"1"), CreateMode::Persistent).await.unwrap();
        }
        let first = soon(jobs.take()).await.unwrap();
        soon(first.ack()).await.unwrap();
        assert!(soon(jobs.try_take()).await.unwrap().is_none());
        let letters = jobs.dead_letters().list().await.unwrap();
        assert_eq!(letters.len(), 4);
        assert!(letters.iter().all(|letter| letter.reason == DeadReason::Undecodable && letter.deliveries.is_none()));
        assert!(letters[3].detail.contains("2 items in one node"), "{letters:?}");
        assert_eq!(client.children(QUEUE).await.unwrap().names.len(), 3);
    }

    async fn two_queues_with_one_lock_path_have_separate_consumers_and_dead_letters(backend: Backend) {
        const OTHER: &str = "/other";
        let server = backend.start().await;
        let producer = connect(&server).await;
        let (jobs, peer) = (curator(&producer), curator_at(&producer, OTHER));
        // Three consumers of one queue come first, and one consumer of the other queue waits behind them.
        let mut waiting = Vec::new();
        for (path, count) in [(QUEUE, 1), (QUEUE, 2), (QUEUE, 3), (OTHER, 1)] {
            let client = connect(&server).await;
            let jobs = curator_at(&client, path);
            waiting.push((client, tokio::spawn(async move { jobs.take().await })));
            until(async || producer.children(&places(path)).await.map_or(0, |line| line.names.len()) == count).await;
        }
        peer.put(&"theirs".to_owned()).await.unwrap();
        let (_client, take) = waiting.pop().unwrap();
        let taken = within(Duration::from_secs(5), take).await.unwrap().unwrap();
        assert_eq!(taken.item(), "theirs");
        soon(taken.reject("it looks wrong")).await.unwrap();
        assert_eq!(soon(peer.dead_letters().list()).await.unwrap().len(), 1);
        assert!(soon(jobs.dead_letters().list()).await.unwrap().is_empty());
    }

    async fn a_curator_item_that_another_consumer_has_deleted_is_skipped(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = curator(&client);
        jobs.put_all(&["a".to_owned(), "b".to_owned(), "c".to_owned()]).await.unwrap();
        // The consumer lists three items and takes the first.
        let first = soon(jobs.take()).await.unwrap();
        other.delete(&format!("{QUEUE}/queue-0000000001"), None).await.unwrap();
        let third = soon(jobs.take()).await.unwrap();
        assert_eq!(third.item(), "c");
        drop((first, third));
        let again = soon(jobs.take()).await.unwrap();
        assert_eq!(again.item(), "a");
        soon(async {
            while client.children(LOCKS).await.unwrap().names.contains(&"queue-0000000001".to_owned()) {
                docent_tests::pause().await;
            }
        }).await;
    }
}
