//! Items that are given back for later: they keep their place, and use none of the consumer's ephemeral
//! nodes.

use crate::jobs::{A_WHILE, QUEUE, queue, take};
use docent::{Client, CreateMode, Election, Mutex, Queue};
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::{child_count, connect, soon, until};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LATER: Duration = Duration::from_secs(600);

/// A client whose session may own few nodes.
async fn small(server: &TestServer, bytes: usize) -> Client {
    let builder = docent_tests::builder(server, server.connect_string());
    builder.max_ephemeral_bytes(bytes).connect().await.unwrap()
}

/// Creates ephemeral nodes until the session may own no more.
async fn fill_up(client: &Client) -> Vec<String> {
    let mut nodes = Vec::new();
    for number in 0.. {
        let path = format!("/node-{number}");
        match client.create(&path, "", CreateMode::Ephemeral).await {
            Ok(_) => nodes.push(path),
            Err(error) => {
                assert_eq!(error.kind(), docent::ErrorKind::TooManyEphemerals, "{error}");
                break;
            }
        }
    }
    nodes
}

both_backends! {
    async fn jobs_given_back_for_later_use_up_none_of_the_sessions_nodes(backend: Backend) {
        const JOBS: u64 = 200;
        let server = backend.start().await;
        let client = small(&server, 8 * 1024).await;
        let jobs = queue(&client);
        let items: Vec<u64> = (0..JOBS).collect();
        jobs.put_all(&items).await.unwrap();
        for _ in 0..JOBS {
            take(&jobs).await.nack_after(LATER).unwrap();
        }
        assert!(soon(jobs.try_take()).await.unwrap().is_none());
        until(async || child_count(&client, &format!("{QUEUE}/claims")).await == 0).await;
        assert_eq!(jobs.len().await.unwrap(), usize::try_from(JOBS).unwrap());
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        soon(guard.release()).await.unwrap();
        jobs.put(&JOBS).await.unwrap();
        assert_eq!(*take(&jobs).await.item(), JOBS);
    }

    async fn an_item_given_back_for_later_keeps_its_place_and_its_count(backend: Backend) {
        const DELAY: Duration = Duration::from_millis(500);
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2, 3]).await.unwrap();
        let first = take(&jobs).await;
        first.nack_after(DELAY).unwrap();
        // The item returns on time, even if the consumer that gave it back has closed.
        let second = take(&jobs).await;
        assert_eq!(*second.item(), 2);
        second.nack_after(Duration::from_millis(1)).unwrap();
        until(async || jobs.peek().await.unwrap() == Some(1)).await;
        for (item, deliveries) in [(1, 2), (2, 2), (3, 1)] {
            let delivery = soon(jobs.take()).await.unwrap();
            assert_eq!((*delivery.item(), delivery.deliveries()), (item, Some(deliveries)));
            soon(delivery.ack()).await.unwrap();
        }
        assert!(jobs.is_empty().await.unwrap());
    }

    async fn a_delay_outlives_the_client_that_gave_the_item_back(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        take(&jobs).await.nack_after(LATER).unwrap();
        soon(client.close()).await;
        let jobs = queue(&other);
        let second = take(&jobs).await;
        assert_eq!(*second.item(), 2);
        assert_eq!(jobs.len().await.unwrap(), 2);
        assert!(soon(jobs.try_take()).await.unwrap().is_none());
    }

    async fn deliveries_that_are_dropped_return_after_their_delay(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = Queue::<u64>::builder(&client, QUEUE).redelivery_delay(LATER, LATER).build().unwrap();
        jobs.put_all(&[1, 2]).await.unwrap();
        drop(take(&jobs).await);
        take(&jobs).await.nack().unwrap();
        assert!(soon(jobs.try_take()).await.unwrap().is_none());
        until(async || child_count(&client, &format!("{QUEUE}/claims")).await == 0).await;
        let items = client.children(&format!("{QUEUE}/items")).await.unwrap().names;
        assert!(items.iter().all(|name| name.starts_with("item-r")), "{items:?}");
        soon(client.close()).await;
    }

    async fn claims_leave_room_for_locks_and_elections(backend: Backend) {
        let server = backend.start().await;
        let client = small(&server, 8 * 1024).await;
        let jobs = queue(&client);
        let items: Vec<u64> = (0..200).collect();
        jobs.put_all(&items).await.unwrap();
        let mut held = Vec::new();
        let refused = loop {
            match soon(jobs.try_take()).await {
                Ok(delivery) => held.push(delivery.unwrap()),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), docent::ErrorKind::TooManyEphemerals, "{refused}");
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let leadership = soon(Election::new(&client, "/election").unwrap().campaign()).await.unwrap();
        soon(guard.release()).await.unwrap();
        soon(leadership.resign()).await.unwrap();
        // A waiting call gets the next item after one of the held ones is done.
        let next = tokio::spawn({
            let jobs = jobs.clone();
            async move { jobs.take().await.map(|delivery| *delivery.item()) }
        });
        let done = held.pop().unwrap();
        soon(done.ack()).await.unwrap();
        soon(next).await.unwrap().unwrap();
        join_all(held.into_iter().map(docent::Delivery::ack)).await;
    }

    async fn locks_and_elections_wait_until_the_session_may_own_another_node(backend: Backend) {
        let server = backend.start().await;
        let client = small(&server, 2 * 1024).await;
        let nodes = fill_up(&client).await;
        let terms = Arc::new(AtomicUsize::new(0));
        let mut run = tokio::spawn({
            let (client, terms) = (client.clone(), Arc::clone(&terms));
            async move {
                let election = Election::new(&client, "/election").unwrap();
                let work = move |_| {
                    terms.fetch_add(1, Ordering::Relaxed);
                    async { std::future::pending::<Result<(), docent::Error>>().await }
                };
                election.run(work).await
            }
        });
        let mut acquired = tokio::spawn({
            let lock = Mutex::new(&client, "/lock").unwrap();
            async move { lock.acquire().await.map(|guard| guard.fence()) }
        });
        // Neither call gives up meanwhile.
        assert!(tokio::time::timeout(A_WHILE, &mut acquired).await.is_err());
        assert!(tokio::time::timeout(A_WHILE, &mut run).await.is_err());
        for node in nodes {
            client.delete(&node, None).await.unwrap();
        }
        soon(acquired).await.unwrap().unwrap();
        until(async || terms.load(Ordering::Relaxed) == 1).await;
        run.abort();
    }
}
