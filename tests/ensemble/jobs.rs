//! A queue under load.

use docent::queue::{AckError, PutError};
use docent::{Client, Queue};
use docent_tests::{soon, while_progressing};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PACE: Duration = Duration::from_millis(50);
/// Limits the number of items, because many items make a queue slow.
const CAPACITY: usize = 100;

/// Outcome of a put, as far as its producer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    Done,
    Unknown,
}

/// Taken items, as far as their consumers know.
#[derive(Debug, Default)]
struct Taken {
    /// Number of acknowledgements of each item.
    acknowledged: BTreeMap<u64, usize>,
    /// Items with an acknowledgement whose outcome is unknown.
    perhaps: BTreeSet<u64>,
}

/// Producers that put numbers, and consumers that take and acknowledge them.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// The client of a consumer.
    client: Client,
    queue: Queue<u64>,
    stop: CancellationToken,
    producers: Vec<JoinHandle<BTreeMap<u64, Put>>>,
    consumers: Vec<JoinHandle<Taken>>,
    done: Arc<AtomicUsize>,
}

impl Jobs {
    /// Starts one producer for each client in `producers`, and one consumer for each client in `consumers`. A
    /// client may be in both.
    pub(crate) fn start(producers: &[Client], consumers: &[Client]) -> Self {
        let queue = |client| Queue::builder(client, "/jobs").capacity(CAPACITY).build().unwrap();
        let (stop, done) = (CancellationToken::new(), Arc::default());
        let produce = |(first, client)| {
            tokio::spawn(produce(queue(client), first as u64, producers.len(), stop.clone()))
        };
        let consume = |client| tokio::spawn(consume(queue(client), stop.clone(), Arc::clone(&done)));
        Self {
            producers: producers.iter().enumerate().map(produce).collect(),
            consumers: consumers.iter().map(consume).collect(),
            client: consumers[0].clone(),
            queue: queue(&consumers[0]),
            stop,
            done,
        }
    }

    /// Waits until more items were acknowledged.
    pub(crate) async fn keep_working(&self) {
        let before = self.done.load(Ordering::SeqCst);
        while self.done.load(Ordering::SeqCst) < before + 5 {
            tokio::time::sleep(PACE).await;
        }
    }

    /// Ends the work, and checks that no item was lost, duplicated or invented. Returns true if the outcome
    /// of every put and acknowledgement is known.
    pub(crate) async fn finish(self) -> bool {
        let (wrong, known) = self.account().await;
        assert_eq!(wrong, [""; 0]);
        known
    }

    /// Does the same as [`finish`](Self::finish), but returns all violations.
    pub(crate) async fn account(self) -> (Vec<String>, bool) {
        self.stop.cancel();
        let mut put = BTreeMap::new();
        for producer in self.producers {
            put.append(&mut soon(producer).await.unwrap());
        }
        let mut taken = Taken::default();
        for consumer in self.consumers {
            taken.add(while_progressing(|| self.done.load(Ordering::SeqCst), consumer).await.unwrap());
        }
        // Makes items visible that were put through another server.
        soon(self.client.sync("/jobs")).await.unwrap();
        // Items that were being delivered when their consumer was stopped return to the queue.
        while !soon(self.queue.is_empty()).await.unwrap() {
            let delivery = soon(self.queue.take()).await.unwrap();
            *taken.acknowledged.entry(*delivery.item()).or_default() += 1;
            soon(delivery.ack()).await.unwrap();
        }
        (wrong(&put, &taken), taken.perhaps.is_empty() && put.values().all(|put| *put == Put::Done))
    }
}

impl Taken {
    fn add(&mut self, more: Self) {
        for (item, times) in more.acknowledged {
            *self.acknowledged.entry(item).or_default() += times;
        }
        self.perhaps.extend(more.perhaps);
    }
}

fn wrong(put: &BTreeMap<u64, Put>, taken: &Taken) -> Vec<String> {
    let mut wrong = Vec::new();
    for (item, times) in &taken.acknowledged {
        if *times > 1 {
            wrong.push(format!("item {item} was acknowledged {times} times"));
        }
        if !put.contains_key(item) {
            wrong.push(format!("item {item} was never put"));
        }
    }
    for (item, put) in put {
        let accounted = taken.acknowledged.contains_key(item) || taken.perhaps.contains(item);
        if *put == Put::Done && !accounted {
            wrong.push(format!("item {item} is missing"));
        }
    }
    wrong
}

/// Puts every `step`-th number.
async fn produce(queue: Queue<u64>, first: u64, step: usize, stop: CancellationToken) -> BTreeMap<u64, Put> {
    let mut put = BTreeMap::new();
    for item in (first..).step_by(step) {
        if stop.run_until_cancelled(tokio::time::sleep(PACE)).await.is_none() {
            break;
        }
        match queue.put(&item).await {
            Ok(()) => drop(put.insert(item, Put::Done)),
            Err(PutError::Core(error)) if error.may_have_applied() => drop(put.insert(item, Put::Unknown)),
            // The item was not put, and never will be.
            Err(PutError::Core(_) | PutError::Full { .. }) => {}
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
            // The item is back in the queue.
            Err(_) => {}
        }
    }
    all
}
