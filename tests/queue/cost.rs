//! Requests that takes cost, whatever others do.

use crate::jobs::{A_WHILE, QUEUE, queue};
use docent::{Client, Queue};
use docent_battery::{Backend, Direction, FrameKind, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, until};
use std::time::Duration;
use tokio::task::JoinSet;

/// Requests besides pings.
fn requests(trace: &[Traced]) -> usize {
    trace.iter().filter(|frame| frame.kind == FrameKind::Request && frame.op != Some(OpCode::Ping)).count()
}

/// A queue without a look at its size before each put.
fn unbounded(client: &Client) -> Queue<u64> {
    Queue::builder(client, QUEUE).build().unwrap()
}

both_backends! {
    async fn a_take_costs_the_same_whatever_others_work_on(backend: Backend) {
        let server = backend.start().await;
        let (working, client) = (connect(&server).await, connect(&server).await);
        let (working, jobs) = (queue(&working), queue(&client));
        for from in [0, 500] {
            working.put_all(&(from..from + 500).collect::<Vec<_>>()).await.unwrap();
        }
        let held = soon(working.take_batch(1000)).await.unwrap();
        assert_eq!(held.len(), 1000);
        jobs.put_all(&[1, 2]).await.unwrap();
        soon(soon(jobs.take()).await.unwrap().ack()).await.unwrap();
        let proxy = server.front();
        let before = proxy.trace().len();
        soon(soon(jobs.take()).await.unwrap().ack()).await.unwrap();
        let cost = requests(&proxy.trace()[before..]);
        assert!(cost <= 6, "a take and its acknowledgement took {cost} requests");
        // One that waits asks for nothing while nothing changes.
        let proxy = server.proxy().await;
        let idle = builder(&server, proxy.connect_string())
            .session_timeout(Duration::from_secs(60))
            .connect()
            .await
            .unwrap();
        let take = tokio::spawn({ let jobs = queue(&idle); async move { jobs.take().await } });
        until(async || {
            let before = proxy.trace().len();
            tokio::time::sleep(A_WHILE).await;
            before > 5 && requests(&proxy.trace()[before..]) == 0
        }).await;
        let before = proxy.trace().len();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(requests(&proxy.trace()[before..]), 0);
        drop(held);
        soon(soon(take).await.unwrap().unwrap().ack()).await.unwrap();
    }

    async fn four_producers_and_four_consumers_take_at_most_twelve_requests_for_each_item(backend: Backend) {
        const EACH: u64 = 250;
        let server = backend.start().await;
        let proxy = server.front();
        let judge = connect(&server).await;
        let before = proxy.trace().len();
        let mut tasks = JoinSet::new();
        for producer in 0..4 {
            let jobs = unbounded(&connect(&server).await);
            tasks.spawn(async move {
                for item in 0..EACH {
                    jobs.put(&(producer * EACH + item)).await.unwrap();
                }
            });
        }
        let mut consumers = JoinSet::new();
        for _ in 0..4 {
            let jobs = unbounded(&connect(&server).await);
            consumers.spawn(async move {
                loop {
                    jobs.take().await.unwrap().ack().await.unwrap();
                }
            });
        }
        while let Some(done) = soon(tasks.join_next()).await {
            done.unwrap();
        }
        let jobs = unbounded(&judge);
        let mut looks = 0;
        until(async || {
            looks += 1;
            jobs.is_empty().await.unwrap()
        }).await;
        let cost = requests(&proxy.trace()[before..]) - looks;
        let each = cost as f64 / (4 * EACH) as f64;
        println!("{each:.1} requests for each item");
        assert!(each <= 12.0, "{each:.1} requests for each item");
        consumers.abort_all();
    }

    async fn fifty_tasks_of_a_process_do_not_wait_for_each_other(backend: Backend) {
        const ITEMS: u64 = 500;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = connect(&server).await;
        let slow = builder(&server, proxy.connect_string()).connect().await.unwrap();
        queue(&client).put_all(&(0..ITEMS).collect::<Vec<_>>()).await.unwrap();
        proxy.set_delay(Direction::ToServer, Duration::from_millis(10));
        let before = proxy.trace().len();
        let mut tasks = JoinSet::new();
        let jobs = queue(&slow);
        for _ in 0..50 {
            let jobs = jobs.clone();
            tasks.spawn(async move {
                while let Some(delivery) = jobs.take_timeout(A_WHILE).await.unwrap() {
                    delivery.ack().await.unwrap();
                }
            });
        }
        while let Some(done) = soon(tasks.join_next()).await {
            done.unwrap();
        }
        assert!(queue(&client).is_empty().await.unwrap());
        // One claim is for all that wait meanwhile: with one at a time there were as many as items.
        let trace = proxy.trace();
        let writes = trace[before..].iter().filter(|frame| frame.is_request(OpCode::Multi)).count();
        let claims = writes - usize::try_from(ITEMS).unwrap();
        assert!(claims < 100, "{claims} claims for {ITEMS} items");
    }
}
