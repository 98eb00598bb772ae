//! Order in which a client's work ends, so that nothing is left.

use docent::discovery::{Instance, RegistrationStatus, Registry};
use docent::{Client, Election, Error, ErrorKind, Mutex, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{PATIENCE, child_count, connect, soon, until};
use futures_util::StreamExt;
use std::future::pending;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::sync::oneshot;

type Ended = Arc<StdMutex<Vec<&'static str>>>;

/// Records when a leader's work is dropped.
struct Stopped(Ended);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("election");
    }
}

/// Returns true if a node exists at `path`, after a sync.
async fn exists(client: &Client, path: &str) -> bool {
    client.sync(path).await.unwrap();
    client.exists(path).await.unwrap().is_some()
}

/// Returns true if the line at `path` is empty.
async fn is_empty(client: &Client, path: &str) -> bool {
    client.sync(path).await.unwrap();
    child_count(client, path).await == 0
}

both_backends! {
    async fn everything_ends_in_its_order_and_no_node_remains(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let ended = Ended::default();
        let registry = Registry::builder(&client, "/services").drain(Duration::from_millis(300)).build().unwrap();
        let registration = soon(registry.register(Instance::new("orders", "h", 1).id("a"))).await.unwrap();

        // A leader whose work ends only when it is stopped.
        let election = Election::builder(&client, "/election").build().unwrap();
        let (leads, led) = oneshot::channel();
        let leader = tokio::spawn({
            let (ended, other) = (Arc::clone(&ended), other.clone());
            let mut leads = Some(leads);
            async move {
                let work = move |_leadership| {
                    let leads = leads.take();
                    let stopped = Stopped(Arc::clone(&ended));
                    async move {
                        let _stopped = stopped;
                        leads.map(|leads| leads.send(()));
                        pending::<Result<(), Error>>().await
                    }
                };
                let run = election.run(work).await;
                assert!(!exists(&other, "/services/orders/a").await, "the instance is deregistered first");
                run
            }
        });
        soon(led).await.unwrap();

        // A consumer that needs the client to finish an item.
        let queue = Queue::<String>::new(&client, "/jobs").unwrap();
        soon(queue.put(&"one".to_owned())).await.unwrap();
        soon(queue.put(&"two".to_owned())).await.unwrap();
        let (works, working) = oneshot::channel();
        let consumer = tokio::spawn({
            let (ended, queue, client) = (Arc::clone(&ended), queue.clone(), client.clone());
            async move {
                let mut deliveries = queue.deliveries();
                let delivery = deliveries.next().await.unwrap().unwrap();
                works.send(()).unwrap();
                while !is_empty(&client, "/election").await {}
                delivery.ack().await.unwrap();
                assert!(deliveries.next().await.is_none(), "no further item is taken");
                ended.lock().unwrap().push("deliveries");
            }
        });
        soon(working).await.unwrap();

        // A holder that releases when it is asked, and a waiter behind it.
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let holder = tokio::spawn({
            let (ended, client) = (Arc::clone(&ended), client.clone());
            async move {
                guard.revoked().await;
                assert!(guard.is_held() && is_empty(&client, "/jobs/claims").await);
                ended.lock().unwrap().push("lock");
                guard.release().await
            }
        });
        let waiter = tokio::spawn(mutex.acquire());
        until(async || mutex.participants().await.unwrap().len() == 2).await;

        let report = soon(client.shutdown(PATIENCE)).await;
        assert!(report.is_clean(), "{report}");
        assert!(report.took >= Duration::from_millis(300), "the shutdown waited for the drain: {report}");
        soon(leader).await.unwrap().unwrap();
        soon(consumer).await.unwrap();
        soon(holder).await.unwrap().unwrap();
        assert!(soon(waiter).await.unwrap().is_err());
        assert_eq!(*ended.lock().unwrap(), ["election", "deliveries", "lock"]);
        assert!(matches!(registration.status(), RegistrationStatus::Removed));
        for folder in ["/services/orders", "/election", "/jobs/claims", "/lock"] {
            assert!(is_empty(&other, folder).await, "{folder}");
        }
        let remaining = soon(Queue::<String>::new(&other, "/jobs").unwrap().take()).await.unwrap();
        assert_eq!(remaining.item(), "two");
    }

    async fn every_call_after_a_shutdown_fails_with_closed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (election, queue) = (Election::new(&client, "/election").unwrap(), Queue::<String>::new(&client, "/jobs").unwrap());
        let registry = Registry::new(&client, "/services").unwrap();
        assert!(soon(client.shutdown(PATIENCE)).await.is_clean());
        let closed = |error: Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        closed(soon(client.get("/")).await.unwrap_err());
        closed(soon(election.campaign()).await.unwrap_err());
        closed(soon(election.run(|_| async { Ok::<_, Error>(()) })).await.unwrap_err());
        closed(soon(queue.take()).await.unwrap_err());
        closed(soon(registry.register(Instance::new("orders", "h", 1))).await.unwrap_err());
        let error = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap_err();
        assert!(error.to_string().contains("closed"), "{error}");
    }

    async fn persistent_nodes_stay(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let kept = docent::recipe::KeptNode::builder(&client, "/kept").mode(docent::CreateMode::Persistent);
        let kept = soon(kept.keep()).await.unwrap();
        soon(kept.present()).await.unwrap();
        assert!(soon(client.shutdown(PATIENCE)).await.is_clean());
        assert!(exists(&other, "/kept").await);
    }

    async fn an_acknowledgement_in_progress_is_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, judge) = (connect(&server).await, connect(&server).await);
        let jobs = Queue::<u64>::new(&client, "/jobs").unwrap();
        for item in 0..20 {
            jobs.put(&item).await.unwrap();
        }
        let batch = soon(jobs.take_batch(20)).await.unwrap();
        let acks = futures_util::future::join_all(batch.into_iter().map(docent::Delivery::ack));
        let (acked, report) = soon(async { tokio::join!(acks, client.shutdown(Duration::from_secs(10))) }).await;
        assert!(acked.iter().all(Result::is_ok), "{acked:?}");
        assert!(report.is_clean(), "{report}");
        assert!(Queue::<u64>::new(&judge, "/jobs").unwrap().is_empty().await.unwrap());
    }
}
