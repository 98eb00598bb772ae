//! A queue at work.

use docent::{AckError, Client, PutError, Queue};
use docent_tests::{as_it_goes_on, soon};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PACE: Duration = Duration::from_millis(20);

/// What is known of an item that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    Done,
    Unknown,
}

/// What is known of items that were taken.
#[derive(Debug, Default)]
struct Taken {
    /// How often each was acknowledged.
    acknowledged: BTreeMap<u64, usize>,
    /// Those of which an acknowledgement may have been applied.
    perhaps: BTreeSet<u64>,
}

/// One puts numbers, another one takes and acknowledges them.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// The consumer's.
    client: Client,
    queue: Queue<u64>,
    stop: CancellationToken,
    producer: JoinHandle<BTreeMap<u64, Put>>,
    consumer: JoinHandle<Taken>,
    done: Arc<AtomicUsize>,
}

impl Jobs {
    pub(crate) fn start(producer: &Client, consumer: &Client) -> Self {
        let queue = |client| Queue::new(client, "/jobs").unwrap();
        let (stop, done) = (CancellationToken::new(), Arc::default());
        Self {
            producer: tokio::spawn(produce(queue(producer), stop.clone())),
            consumer: tokio::spawn(consume(queue(consumer), stop.clone(), Arc::clone(&done))),
            client: consumer.clone(),
            queue: queue(consumer),
            stop,
            done,
        }
    }

    /// Waits until some more were acknowledged.
    pub(crate) async fn go_on(&self) {
        let before = self.done.load(Ordering::SeqCst);
        while self.done.load(Ordering::SeqCst) < before + 5 {
            tokio::time::sleep(PACE).await;
        }
    }

    /// Ends the work, and checks that no item was lost, doubled or invented. True when it is known of every put and acknowledgement
    /// whether it was applied.
    pub(crate) async fn finish(self) -> bool {
        self.stop.cancel();
        let put = soon(self.producer).await.unwrap();
        let Taken { mut acknowledged, perhaps } =
            as_it_goes_on(|| self.done.load(Ordering::SeqCst), self.consumer).await.unwrap();
        // What was put through another server is there.
        soon(self.client.sync("/jobs")).await.unwrap();
        // The one that the consumer was about to get when it was stopped comes back.
        while !soon(self.queue.is_empty()).await.unwrap() {
            let delivery = soon(self.queue.take()).await.unwrap();
            *acknowledged.entry(*delivery.item()).or_default() += 1;
            soon(delivery.ack()).await.unwrap();
        }
        for (item, times) in &acknowledged {
            assert_eq!(*times, 1, "item {item} was acknowledged so often");
            assert!(put.contains_key(item), "item {item} was never put");
        }
        for (item, put) in &put {
            let accounted = acknowledged.contains_key(item) || perhaps.contains(item);
            assert!(*put == Put::Unknown || accounted, "item {item} is gone");
        }
        perhaps.is_empty() && put.values().all(|put| *put == Put::Done)
    }
}

async fn produce(queue: Queue<u64>, stop: CancellationToken) -> BTreeMap<u64, Put> {
    let mut put = BTreeMap::new();
    for item in 0.. {
        if stop.run_until_cancelled(tokio::time::sleep(PACE)).await.is_none() {
            break;
        }
        match queue.put(&item).await {
            Ok(()) => drop(put.insert(item, Put::Done)),
            Err(PutError::Core(error)) if error.may_have_applied() => drop(put.insert(item, Put::Unknown)),
            // The session has ended before it was sent.
            Err(PutError::Core(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    put
}

async fn consume(queue: Queue<u64>, stop: CancellationToken, done: Arc<AtomicUsize>) -> Taken {
    let mut all = Taken::default();
    while let Some(taken) = stop.run_until_cancelled(queue.take()).await {
        let delivery = taken.unwrap();
        let item = *delivery.item();
        match delivery.ack().await {
            Ok(()) => {
                *all.acknowledged.entry(item).or_default() += 1;
                done.fetch_add(1, Ordering::SeqCst);
            }
            Err(AckError::Core(error)) if error.may_have_applied() => drop(all.perhaps.insert(item)),
            // It is back in the queue.
            Err(_) => {}
        }
    }
    all
}
