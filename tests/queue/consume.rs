//! `Queue::consume`: the loop of a consumer.

use crate::jobs::{QUEUE, queue, until_idle};
use docent::node::{Acl, Permissions};
use docent::{Client, ConnectionState, ErrorKind, Queue};
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, builder, connect, soon, until};
use futures_util::FutureExt;
use std::fmt;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Error of a work.
#[derive(Debug)]
struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work failed")
    }
}

async fn behind_proxy(server: &TestServer, timeout: Duration) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).session_timeout(timeout).connect().await.unwrap();
    (client, proxy)
}

async fn length(jobs: &Queue<u64>) -> usize {
    jobs.len().await.unwrap()
}

/// A consumer in its own task, and the items that it worked on.
struct Consumer {
    stop: CancellationToken,
    began: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<Result<(), docent::Error>>,
}

impl Consumer {
    /// Starts a consumer whose work on each item waits for `proceed`.
    fn start(jobs: &Queue<u64>, concurrency: usize, proceed: &CancellationToken) -> Self {
        let (stop, began) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn({
            let (jobs, stop, began, proceed) =
                (jobs.clone(), stop.clone(), Arc::clone(&began), proceed.clone());
            async move {
                let work = async move |_: &u64| {
                    began.fetch_add(1, Ordering::SeqCst);
                    proceed.cancelled().await;
                    Ok::<_, Failed>(())
                };
                jobs.consume(work).concurrency(concurrency).until(stop.cancelled()).await
            }
        });
        Self { stop, began, task }
    }

    async fn until_began(&self, items: usize) {
        until(async || self.began.load(Ordering::SeqCst) >= items).await;
    }

    async fn stop(self) {
        self.stop.cancel();
        soon(self.task).await.unwrap().unwrap();
    }
}

both_backends! {
    async fn a_failed_item_is_given_back_and_consumed_again(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = Queue::<u64>::builder(&client, QUEUE)
            .redelivery_delay(Duration::from_millis(10), Duration::from_millis(10)).build().unwrap();
        jobs.put_all(&[1, 2]).await.unwrap();
        let (stop, failures) = (CancellationToken::new(), AtomicUsize::new(0));
        let work = async |item: &u64| {
            if *item == 1 && failures.fetch_add(1, Ordering::SeqCst) < 2 {
                return Err(Failed);
            }
            if *item == 1 {
                stop.cancel();
            }
            Ok(())
        };
        soon(jobs.consume(work).until(stop.cancelled())).await.unwrap();
        soon(jobs.consume(async |_: &u64| Ok::<_, Failed>(())).until(async {
            while length(&jobs).await > 0 { docent_tests::pause().await; }
        })).await.unwrap();
        assert_eq!(failures.load(Ordering::SeqCst), 3);
    }

    async fn items_are_consumed_at_the_same_time_up_to_the_limit(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2, 3]).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 2, &proceed);
        consumer.until_began(2).await;
        docent_tests::pause().await;
        assert_eq!(consumer.began.load(Ordering::SeqCst), 2);
        proceed.cancel();
        until(async || length(&jobs).await == 0).await;
        consumer.stop().await;
    }

    async fn an_item_in_work_at_the_stop_is_finished_and_no_other_is_taken(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 1, &proceed);
        consumer.until_began(1).await;
        consumer.stop.cancel();
        docent_tests::pause().await;
        assert!(!consumer.task.is_finished());
        proceed.cancel();
        soon(consumer.task).await.unwrap().unwrap();
        assert_eq!((consumer.began.load(Ordering::SeqCst), length(&jobs).await), (1, 1));
    }

    async fn a_shutdown_of_the_client_ends_a_consumer_after_its_work(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 1, &proceed);
        consumer.until_began(1).await;
        let shutdown = tokio::spawn(client.shutdown(Duration::from_secs(20)));
        docent_tests::pause().await;
        proceed.cancel();
        soon(consumer.task).await.unwrap().unwrap();
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(length(&queue(&other)).await, 1);
        let late = soon(jobs.consume(async |_: &u64| Ok::<_, Failed>(()))).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Closed);
    }

    async fn a_close_of_the_client_ends_a_consumer_with_an_error(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let consumer = Consumer::start(&queue(&client), 1, &CancellationToken::new());
        docent_tests::pause().await;
        soon(client.close()).await;
        assert_eq!(soon(consumer.task).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_dropped_consumer_gives_its_items_back(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        let consumer = Consumer::start(&jobs, 2, &CancellationToken::new());
        consumer.until_began(2).await;
        consumer.task.abort();
        let jobs = queue(&other);
        for _ in 0..2 {
            soon(jobs.take()).await.unwrap().ack().await.unwrap();
        }
    }

    async fn a_panic_of_the_work_propagates_and_gives_the_items_back(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let consume = jobs.consume(async |_: &u64| -> Result<(), Failed> { panic!("the work panics") });
        assert!(soon(AssertUnwindSafe(consume).catch_unwind()).await.is_err());
        soon(queue(&other).take()).await.unwrap().ack().await.unwrap();
    }

    async fn a_stopped_consumer_withdraws_the_take_that_waits(backend: Backend) {
        let server = backend.start().await;
        let (client, watcher) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 2, &proceed);
        consumer.until_began(1).await;
        until_idle(&watcher, 1).await;
        consumer.stop.cancel();
        let idle = format!("{QUEUE}/idle");
        until(async || watcher.children(&idle).await.map_or(true, |line| line.names.is_empty())).await;
        assert!(!consumer.task.is_finished());
        proceed.cancel();
        consumer.stop().await;
    }

    async fn an_item_lost_to_an_expiry_is_consumed_again(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 1, &proceed);
        consumer.until_began(1).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        consumer.until_began(2).await;
        proceed.cancel();
        until(async || length(&jobs).await == 0).await;
        consumer.stop().await;
    }

    async fn a_lost_reply_to_an_acknowledgement_neither_ends_the_consumer_nor_repeats_the_item(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, docent_tests::SESSION).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 1, &proceed);
        consumer.until_began(1).await;
        let swallowed = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
        proceed.cancel();
        soon(swallowed.fired()).await;
        proxy.reset().await;
        let jobs = queue(&other);
        until(async || length(&jobs).await == 0).await;
        assert_eq!(consumer.began.load(Ordering::SeqCst), 2);
        consumer.stop().await;
    }

    async fn an_acknowledgement_outlasts_an_outage_longer_than_the_operation_timeout(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).session_timeout(Duration::from_secs(30))
            .operation_timeout(Duration::from_millis(200)).connect().await.unwrap();
        let jobs = queue(&client);
        // Not by the client, whose short timeout a busy machine may reach.
        queue(&other).put(&1).await.unwrap();
        let proceed = CancellationToken::new();
        let consumer = Consumer::start(&jobs, 1, &proceed);
        consumer.until_began(1).await;
        proxy.cut().await;
        proceed.cancel();
        for _ in 0..3 {
            assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::Timeout);
        }
        assert!(!consumer.task.is_finished());
        proxy.heal().await.unwrap();
        until(async || length(&queue(&other)).await == 0).await;
        assert_eq!(consumer.began.load(Ordering::SeqCst), 1);
        consumer.stop().await;
    }

    async fn a_consumer_survives_an_outage_longer_than_its_lease(backend: Backend) {
        for works in [false, true] {
            let server = backend.start().await;
            let other = connect(&server).await;
            let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
            let jobs = queue(&client);
            jobs.put(&1).await.unwrap();
            let proceed = CancellationToken::new();
            let consumer = Consumer::start(&jobs, 1, &proceed);
            consumer.until_began(1).await;
            proxy.cut().await;
            // The outage begins during the work or during the acknowledgement.
            if !works {
                proceed.cancel();
            }
            soon(client.state().reached(ConnectionState::Lost)).await.unwrap();
            proceed.cancel();
            docent_tests::pause().await;
            assert!(!consumer.task.is_finished());
            proxy.heal().await.unwrap();
            until(async || length(&queue(&other)).await == 0).await;
            consumer.stop().await;
        }
    }

    async fn a_stop_during_an_outage_ends_an_idle_consumer_immediately(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let jobs = queue(&client);
        let consumer = Consumer::start(&jobs, 1, &CancellationToken::new());
        docent_tests::pause().await;
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Lost)).await.unwrap();
        docent_tests::within(Duration::from_secs(1), consumer.stop()).await;
    }

    async fn a_refused_take_ends_the_consumer(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let hidden = Acl::new(Permissions::CREATE, "world", "anyone");
        other.set_acl(&format!("{QUEUE}/items"), [hidden], None).await.unwrap();
        let ended = soon(jobs.consume(async |_: &u64| pending::<Result<(), Failed>>().await)).await;
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::NoAuth);
    }
}
