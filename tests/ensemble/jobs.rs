//! A queue at work.

use docent::queue::{AckError, PutError};
use docent::{Client, Queue};
use docent_tests::{as_it_goes_on, soon};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PACE: Duration = Duration::from_millis(50);
/// Many items make a slow queue.
const CAPACITY: usize = 100;

/// Outcome of a put, as far as its producer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    Done,
    Unknown,
}

/// Items that were taken, as far as their consumers know.
#[derive(Debug, Default)]
struct Taken {
    /// How often each was acknowledged.
    acknowledged: BTreeMap<u64, usize>,
    /// Items of which an acknowledgement may have been applied.
    perhaps: BTreeSet<u64>,
}

/// Some put numbers, others take and acknowledge them.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// A consumer's.
    client: Client,
    queue: Queue<u64>,
    stop: CancellationToken,
    producers: Vec<JoinHandle<BTreeMap<u64, Put>>>,
    consumers: Vec<JoinHandle<Taken>>,
    done: Arc<AtomicUsize>,
}

impl Jobs {
    /// One each for every client that is named, which may be the same ones.
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

    /// Waits until some more were acknowledged.
    pub(crate) async fn go_on(&self) {
        let before = self.done.load(Ordering::SeqCst);
        while self.done.load(Ordering::SeqCst) < before + 5 {
            tokio::time::sleep(PACE).await;
        }
    }

    /// Ends the work, and checks that no item was lost, doubled or invented. True when it is known of every
    /// put and acknowledgement whether it was applied.
    pub(crate) async fn finish(self) -> bool {
        let (wrong, known) = self.account().await;
        assert_eq!(wrong, [""; 0]);
        known
    }

    /// As [`finish`](Self::finish), but tells all that is wrong.
    pub(crate) async fn account(self) -> (Vec<String>, bool) {
        self.stop.cancel();
        let mut put = BTreeMap::new();
        for producer in self.producers {
            put.append(&mut soon(producer).await.unwrap());
        }
        let mut taken = Taken::default();
        for consumer in self.consumers {
            taken.add(as_it_goes_on(|| self.done.load(Ordering::SeqCst), consumer).await.unwrap());
        }
        // Items that were put through another server are there.
        soon(self.client.sync("/jobs")).await.unwrap();
        // Items that consumers were about to get when they were stopped come back.
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
            wrong.push(format!("item {item} is gone"));
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
            // It was not put, and never will be.
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
            // It is back in the queue.
            Err(_) => {}
        }
    }
    all
}
