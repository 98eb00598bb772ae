//! Consumers that wait.

use crate::jobs::{A_WHILE, QUEUE, finish, queue, take, until_idle};
use bytes::Bytes;
use docent::node::Acl;
use docent::queue::{AckError, Raw};
use docent::{Client, CreateMode, Queue};
use docent_battery::{Backend, FrameKind, TestServer, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, builder, connect, in_time, soon, within};
use futures_util::future::join_all;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A consumer with its own session and its own proxy, which separates its frames from those of others.
struct Idle {
    client: Client,
    queue: Queue<u64>,
    proxy: docent_battery::Proxy,
}

impl Idle {
    async fn start(server: &TestServer) -> Self {
        Self::start_with(server, Duration::from_secs(60)).await
    }

    async fn start_with(server: &TestServer, timeout: Duration) -> Self {
        let proxy = server.proxy().await;
        let client =
            builder(server, proxy.connect_string()).session_timeout(timeout).connect().await.unwrap();
        assert_eq!(client.session_timeout(), Some(timeout));
        Self { queue: queue(&client), client, proxy }
    }

    /// Number of requests since `since`, without pings and the checks that replace them.
    fn request_count(&self, since: usize) -> usize {
        let is_line_check = |frame: &Traced| {
            frame.op == Some(OpCode::MultiRead)
                && frame.path.as_ref().is_some_and(|path| path.ends_with("/idle"))
        };
        let trace = self.proxy.trace();
        let requests = trace[since..].iter().filter(|frame| frame.kind == FrameKind::Request);
        requests.filter(|frame| frame.op != Some(OpCode::Ping) && !is_line_check(frame)).count()
    }
}

/// Waits until no consumer has sent a request for a while.
async fn until_quiet(idle: &[Idle]) {
    soon(async {
        loop {
            let before: Vec<_> = idle.iter().map(|one| one.proxy.trace().len()).collect();
            tokio::time::sleep(A_WHILE).await;
            if idle.iter().zip(before).all(|(one, before)| one.request_count(before) == 0) {
                break;
            }
        }
    })
    .await;
}

both_backends! {
    async fn a_put_wakes_one_of_a_hundred_idle_consumers_and_none_of_them_polls(backend: Backend) {
        const CONSUMERS: usize = 100;
        let server = backend.start().await;
        let producer = connect(&server).await;
        let jobs = queue(&producer);
        jobs.put(&0).await.unwrap();
        finish(&jobs).await;
        let idle = join_all((0..CONSUMERS).map(|_| Idle::start(&server))).await;
        let mut takes = JoinSet::new();
        for (index, one) in idle.iter().enumerate() {
            let queue = one.queue.clone();
            takes.spawn(async move { (index, queue.take().await) });
        }
        until_idle(&producer, CONSUMERS).await;
        // The last consumers have drawn their places and check the one ahead.
        until_quiet(&idle).await;
        let quiet: Vec<_> = idle.iter().map(|one| one.proxy.trace().len()).collect();
        tokio::time::sleep(Duration::from_secs(2)).await;
        for (one, quiet) in idle.iter().zip(&quiet) {
            assert_eq!(one.request_count(*quiet), 0, "an idle consumer sent requests");
        }
        for item in 1..=3 {
            let before: Vec<_> = idle.iter().map(|one| one.proxy.trace().len()).collect();
            jobs.put(&item).await.unwrap();
            let (winner, taken) = soon(takes.join_next()).await.unwrap().unwrap();
            let taken = taken.unwrap();
            assert_eq!((*taken.item(), taken.deliveries()), (item, Some(1)));
            soon(taken.ack()).await.unwrap();
            until_quiet(&idle).await;
            let woken: Vec<_> =
                (0..CONSUMERS).filter(|index| idle[*index].request_count(before[*index]) > 0).collect();
            // The consumer that got the item, the second in the line, and the consumer that watches from now
            // on.
            assert!(woken.contains(&winner) && woken.len() <= 3, "{woken:?} were woken, and {winner} got it");
        }
        takes.abort_all();
        join_all(idle.iter().map(|one| one.client.close())).await;
    }

    async fn a_dead_first_consumer_in_line_blocks_no_other(backend: Backend) {
        let server = backend.start().await;
        let producer = connect(&server).await;
        let jobs = queue(&producer);
        jobs.put(&0).await.unwrap();
        finish(&jobs).await;
        let (mut idle, mut takes) = (Vec::new(), Vec::new());
        for count in 1..=4 {
            let one = Idle::start(&server).await;
            takes.push(tokio::spawn({ let queue = one.queue.clone(); async move { queue.take().await } }));
            until_idle(&producer, count).await;
            idle.push(one);
        }
        until_quiet(&idle).await;
        // The sessions last for a minute.
        idle[0].proxy.blackhole();
        for (item, place) in [(1, 1), (2, 2), (3, 3)] {
            jobs.put(&item).await.unwrap();
            let taken = within(Duration::from_secs(5), &mut takes[place]).await.unwrap().unwrap();
            assert_eq!((*taken.item(), taken.deliveries()), (item, Some(1)));
            soon(taken.ack()).await.unwrap();
        }
        takes[0].abort();
    }

    async fn several_dead_consumers_at_the_head_of_the_line_delay_a_put_by_a_part_of_a_session_timeout(backend: Backend) {
        let timeout = Duration::from_secs(24);
        for dead in [2, 5] {
            let server = backend.start().await;
            let producer = connect(&server).await;
            let jobs = queue(&producer);
            let (mut idle, mut takes) = (Vec::new(), Vec::new());
            for count in 1..=dead + 1 {
                let one = Idle::start_with(&server, timeout).await;
                takes.push(tokio::spawn({ let queue = one.queue.clone(); async move { queue.take().await } }));
                until_idle(&producer, count).await;
                idle.push(one);
            }
            idle[..dead].iter().for_each(|one| one.proxy.blackhole());
            jobs.put(&1).await.unwrap();
            let taken = within(timeout / 2, &mut takes[dead]).await.unwrap().unwrap();
            assert_eq!((*taken.item(), taken.deliveries()), (1, Some(1)));
            takes.iter().for_each(tokio::task::JoinHandle::abort);
        }
    }

    async fn a_claim_freed_by_the_end_of_a_session_is_taken_up_within_a_second(backend: Backend) {
        let server = backend.start().await;
        let waiting = connect(&server).await;
        let jobs = queue(&waiting);
        in_time(Duration::from_secs(1), async || {
            let crashing = connect(&server).await;
            jobs.put_all(&[1, 2]).await.unwrap();
            let lost = take(&queue(&crashing)).await;
            let kept = take(&jobs).await;
            let take = tokio::spawn({ let jobs = jobs.clone(); async move { jobs.take().await } });
            until_idle(&waiting, 1).await;
            tokio::time::sleep(A_WHILE).await;
            server.expire(crashing.session_id().unwrap()).await.unwrap();
            let expired = Instant::now();
            let again = soon(take).await.unwrap().unwrap();
            let took = expired.elapsed();
            assert_eq!((*again.item(), again.deliveries()), (1, Some(2)));
            assert!(again.fence() > lost.fence());
            soon(lost.lost()).await;
            assert!(!lost.is_held());
            let error = soon(lost.ack()).await.unwrap_err();
            assert!(matches!(error, AckError::Lost(_)), "{error:?}");
            soon(again.ack()).await.unwrap();
            soon(kept.ack()).await.unwrap();
            assert!(jobs.is_empty().await.unwrap());
            took
        })
        .await;
    }

    async fn many_claimed_items_are_all_watched(backend: Backend) {
        let server = backend.start().await;
        let (working, waiting) = (connect(&server).await, connect(&server).await);
        let (working, jobs) = (queue(&working), queue(&waiting));
        jobs.put_all(&(0..100).collect::<Vec<_>>()).await.unwrap();
        let mut held = soon(working.take_batch(100)).await.unwrap();
        assert_eq!(held.len(), 100);
        let take = tokio::spawn({ let jobs = jobs.clone(); async move { jobs.take().await } });
        until_idle(&waiting, 1).await;
        let last = held.pop().unwrap();
        assert_eq!(*last.item(), 99);
        soon(last.nack_now()).await.unwrap();
        let again = soon(take).await.unwrap().unwrap();
        assert_eq!((*again.item(), again.deliveries()), (99, Some(2)));
        drop(held);
    }

    async fn a_consumer_that_waits_survives_outages_and_the_end_of_its_session(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let producer = connect(&server).await;
        let client = builder(&server, proxy.connect_string())
            .session_timeout(SHORT_SESSION)
            .operation_timeout(Duration::from_millis(500))
            .connect()
            .await
            .unwrap();
        let (jobs, waiting) = (queue(&producer), queue(&client));
        let take = tokio::spawn(async move { waiting.take().await });
        until_idle(&producer, 1).await;
        let session = client.session_id().unwrap();
        proxy.cut().await;
        server.expire(session).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!take.is_finished());
        jobs.put(&7).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(*soon(take).await.unwrap().unwrap().item(), 7);
        assert_ne!(client.session_id(), Some(session));
    }

    async fn a_wait_that_times_out_leaves_the_line_and_takes_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        assert!(jobs.take_timeout(A_WHILE).await.unwrap().is_none());
        soon(async {
            while client.children(&format!("{QUEUE}/idle")).await.is_ok_and(|line| !line.names.is_empty()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }).await;
        jobs.put(&1).await.unwrap();
        let taken = soon(jobs.take_timeout(Duration::from_secs(20))).await.unwrap().unwrap();
        assert_eq!(taken.deliveries(), Some(1));
    }

    async fn a_queue_whose_folders_are_deleted_keeps_working(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (jobs, other) = (queue(&client), queue(&other));
        jobs.put(&1).await.unwrap();
        finish(&jobs).await;
        let take = tokio::spawn(async move { other.take().await });
        until_idle(&client, 1).await;
        jobs.reset().await.unwrap();
        jobs.put(&2).await.unwrap();
        assert_eq!(*soon(take).await.unwrap().unwrap().item(), 2);
    }

    async fn a_closed_client_ends_its_waiting_calls(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        let take = tokio::spawn({ let jobs = jobs.clone(); async move { jobs.take().await } });
        until_idle(&client, 1).await;
        soon(client.close()).await;
        assert_eq!(soon(take).await.unwrap().unwrap_err().kind(), docent::ErrorKind::Closed);
        assert_eq!(jobs.try_take().await.unwrap_err().kind(), docent::ErrorKind::Closed);
    }

    async fn a_skipped_item_does_not_keep_waiting_consumers_busy(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/closed", "", CreateMode::Persistent).await.unwrap();
        client.set_acl("/closed", [Acl::read_all()], None).await.unwrap();
        let raw: Queue<Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        raw.put(&Bytes::from_static(b"x")).await.unwrap();
        let mut idle = Idle::start(&server).await;
        idle.queue = crate::jobs::builder(&idle.client).dead_letters("/closed/dead").build().unwrap();
        let take = tokio::spawn({ let jobs = idle.queue.clone(); async move { jobs.take().await } });
        until_idle(&client, 1).await;
        until_quiet(std::slice::from_ref(&idle)).await;
        queue(&client).put(&1).await.unwrap();
        assert_eq!(*soon(take).await.unwrap().unwrap().item(), 1);
    }

    async fn an_item_that_cannot_be_claimed_is_checked_only_occasionally(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let stray = format!("{QUEUE}/items/item-0000000000/stray");
        client.create(&stray, "", CreateMode::Persistent).await.unwrap();
        let idle = Idle::start(&server).await;
        // The item is not claimed, but not free either.
        let held = take(&jobs).await;
        let take = tokio::spawn({ let jobs = idle.queue.clone(); async move { jobs.take().await } });
        until_idle(&client, 1).await;
        let before = idle.proxy.trace().len();
        soon(held.nack_now()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let requests = idle.request_count(before);
        assert!(requests < 30, "the consumer sent {requests} requests");
        client.delete(&stray, None).await.unwrap();
        assert_eq!(*soon(take).await.unwrap().unwrap().item(), 1);
    }

    async fn an_attempt_ends_in_time_although_other_calls_of_its_process_wait_for_a_server(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string())
            .session_timeout(Duration::from_secs(60))
            .operation_timeout(Duration::from_secs(3))
            .connect()
            .await
            .unwrap();
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        proxy.cut().await;
        let mut takes = JoinSet::new();
        for _ in 0..30 {
            let jobs = jobs.clone();
            takes.spawn(async move { jobs.take().await.map(drop) });
        }
        docent_tests::pause().await;
        // One after the other, the calls would need a minute and a half.
        let error = within(Duration::from_secs(20), jobs.try_take()).await.unwrap_err();
        assert_eq!(error.kind(), docent::ErrorKind::Timeout);
        takes.abort_all();
    }

    async fn the_second_consumer_in_line_steps_in_even_if_calls_of_its_process_start_and_end(backend: Backend) {
        let server = backend.start().await;
        let producer = connect(&server).await;
        let jobs = queue(&producer);
        jobs.put(&0).await.unwrap();
        finish(&jobs).await;
        let first = Idle::start(&server).await;
        let dead = tokio::spawn({ let queue = first.queue.clone(); async move { queue.take().await } });
        until_idle(&producer, 1).await;
        let second = Idle::start(&server).await;
        let mut take = tokio::spawn({ let queue = second.queue.clone(); async move { queue.take().await } });
        until_idle(&producer, 2).await;
        until_quiet(std::slice::from_ref(&second)).await;
        // The session lasts for a minute.
        first.proxy.blackhole();
        jobs.put(&1).await.unwrap();
        let taken = within(Duration::from_secs(5), async {
            loop {
                tokio::select! {
                    taken = &mut take => break taken.unwrap(),
                    taken = second.queue.take() => break taken,
                    () = tokio::time::sleep(Duration::from_millis(50)) => {}
                }
            }
        })
        .await
        .unwrap();
        assert_eq!((*taken.item(), taken.deliveries()), (1, Some(1)));
        dead.abort();
        take.abort();
    }
}
