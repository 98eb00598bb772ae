//! A long run of consumers that randomly drop, give back and cancel deliveries, and die.
//!
//! The environment variable `DOCENT_SOAK_ITEMS` sets the number of items (default 2,000).

use crate::jobs::QUEUE;
use docent::queue::{AckError, DeadReason};
use docent::{Client, Delivery, Queue};
use docent_battery::{Backend, TestServer};
use docent_tests::{builder, soon, while_progressing};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

const CONSUMERS: usize = 12;
const MOST: u32 = 6;
const BATCH: usize = 8;
/// One item in this many is never acknowledged.
const POISON: u64 = 499;

/// Record of what consumers saw.
#[derive(Default)]
struct Log {
    /// Hand-outs of each item, with the reported counts.
    handed_out: HashMap<u64, Vec<u32>>,
    acked: HashMap<u64, usize>,
    /// Items whose acknowledgement has an unknown outcome.
    open: HashSet<u64>,
    steps: usize,
}

type Shared = Arc<Mutex<Log>>;

/// A consumer with its own runtime, like a process.
struct Consumer {
    client: Client,
    runtime: Runtime,
}

impl Consumer {
    async fn start(server: &TestServer, log: &Shared, seed: u64) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = {
            let _entered = runtime.enter();
            builder(server, server.connect_string()).session_timeout(Duration::from_secs(60)).build().unwrap()
        };
        client.exists("/").await.unwrap();
        runtime.spawn(consume(queue(&client), Arc::clone(log), Dice(seed)));
        Self { client, runtime }
    }

    async fn kill(self, server: &TestServer) {
        let session = self.client.session_id().unwrap();
        self.runtime.shutdown_background();
        server.expire(session).await.unwrap();
    }
}

/// Pseudo-random numbers (xorshift) that depend only on the seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn queue(client: &Client) -> Queue<u64> {
    Queue::builder(client, QUEUE)
        .unbounded()
        .max_deliveries(MOST)
        .prefetch(4)
        .redelivery_delay(Duration::from_millis(1), Duration::from_millis(20))
        .build()
        .unwrap()
}

async fn consume(queue: Queue<u64>, log: Shared, mut dice: Dice) {
    loop {
        let span = Duration::from_millis(dice.below(30));
        let batch = match dice.below(6) {
            0 => queue.take_timeout(span).await.map(Vec::from_iter),
            1 => match tokio::time::timeout(span, queue.take()).await {
                Ok(taken) => taken.map(|one| vec![one]),
                Err(_) => Ok(Vec::new()),
            },
            2 => queue.try_take().await.map(Vec::from_iter),
            3 => queue.take_batch(BATCH).await,
            4 => {
                let mut deliveries = queue.deliveries();
                let next = futures_util::StreamExt::next(&mut deliveries);
                match tokio::time::timeout(span * 10, next).await {
                    Ok(Some(taken)) => taken.map(|one| vec![one]),
                    Ok(None) => return,
                    Err(_) => Ok(Vec::new()),
                }
            }
            _ => queue.take().await.map(|one| vec![one]),
        };
        let Ok(batch) = batch else { return };
        for delivery in batch {
            settle(delivery, &log, &mut dice).await;
        }
    }
}

async fn settle(delivery: Delivery<u64>, log: &Shared, dice: &mut Dice) {
    let item = *delivery.item();
    {
        let mut log = log.lock().unwrap();
        log.handed_out.entry(item).or_default().push(delivery.deliveries().unwrap());
        log.steps += 1;
    }
    match dice.below(12) {
        0 => drop(delivery.nack_now().await),
        1 => drop(delivery.nack()),
        2 => drop(delivery),
        _ if item.is_multiple_of(POISON) => drop(delivery),
        3 => {
            log.lock().unwrap().open.insert(item);
            let _ = tokio::time::timeout(Duration::from_micros(dice.below(2000)), delivery.ack()).await;
        }
        _ => {
            log.lock().unwrap().open.insert(item);
            let acked = delivery.ack().await;
            let mut log = log.lock().unwrap();
            match acked {
                Ok(()) => {
                    log.open.remove(&item);
                    *log.acked.entry(item).or_default() += 1;
                }
                Err(AckError::Core(error)) if error.may_have_applied() => {}
                Err(_) => drop(log.open.remove(&item)),
            }
        }
    }
}

/// Number of items of a long run.
pub(crate) fn items(default: u64) -> u64 {
    std::env::var("DOCENT_SOAK_ITEMS").map_or(default, |items| items.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_is_acknowledged_once_or_was_handed_out_too_often() {
    let total = items(2_000);
    let server = Backend::Embedded.start().await;
    let judge = docent_tests::connect(&server).await;
    let log = Shared::default();
    let mut producers = JoinSet::new();
    for producer in 0..4 {
        let jobs = queue(&docent_tests::connect(&server).await);
        producers.spawn(async move {
            let items: Vec<_> = (0..total).filter(|item| item % 4 == producer).collect();
            for some in items.chunks(50) {
                jobs.put_all(some).await.unwrap();
            }
        });
    }
    let mut consumers = Vec::new();
    for seed in 1..=CONSUMERS {
        consumers.push(Consumer::start(&server, &log, seed as u64).await);
    }
    let mut kills = 0;
    let work = async {
        let mut put = 0;
        while put < 4 || !queue(&judge).is_empty().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(200)).await;
            while let Some(ended) = producers.try_join_next() {
                ended.unwrap();
                put += 1;
            }
            kills += 1;
            consumers.remove(kills % CONSUMERS).kill(&server).await;
            consumers.push(Consumer::start(&server, &log, (1000 + kills) as u64).await);
        }
    };
    while_progressing(|| log.lock().unwrap().steps, work).await;
    for consumer in consumers {
        soon(consumer.client.close()).await;
        consumer.runtime.shutdown_background();
    }
    let claims = judge.children(&format!("{QUEUE}/claims")).await.unwrap().names;
    assert!(claims.is_empty(), "{claims:?}");
    let dead = queue(&judge).dead_letters();
    let letters = dead.list().await.unwrap();
    assert!(letters.iter().all(|one| one.reason == DeadReason::TooManyDeliveries));
    // A count is too high if a process died just before it moved the item to the dead letters.
    let ahead = letters.iter().map(|one| one.deliveries.unwrap().checked_sub(MOST).unwrap()).sum::<u32>();
    assert!(ahead as usize <= kills, "{ahead} hand-outs too many in dead letters");
    let buried: HashSet<_> = letters.iter().map(|letter| dead.decode(letter).unwrap()).collect();
    assert_eq!(buried.len(), letters.len(), "an item became a dead letter twice");
    check(&log.lock().unwrap(), &buried, total, kills);
    println!("{total} items, {kills} consumers killed");
}

fn check(log: &Log, buried: &HashSet<u64>, total: u64, kills: usize) {
    let mut unseen = 0;
    for item in 0..total {
        let handed_out = log.handed_out.get(&item).map_or(&[][..], Vec::as_slice);
        let acked = log.acked.get(&item).copied().unwrap_or_default();
        assert!(acked <= 1, "item {item} was acknowledged {acked} times");
        let is_open = log.open.contains(&item);
        match buried.contains(&item) {
            true => assert_eq!(acked, 0, "item {item} was acknowledged and became a dead letter"),
            false => assert!(acked == 1 || is_open, "item {item} was lost: {handed_out:?}"),
        }
        if item.is_multiple_of(POISON) {
            assert!(buried.contains(&item), "item {item} was never acknowledged");
        }
        // A count may exceed the number of hand-outs seen only if a process died between hand-out and record.
        let most = handed_out.iter().copied().max().unwrap_or_default().max(if buried.contains(&item) {
            MOST
        } else {
            0
        });
        let seen = u32::try_from(handed_out.len()).unwrap();
        assert!(seen <= most, "item {item} was handed out {seen} times, and counted {most} times");
        unseen += most - seen;
    }
    assert!(unseen as usize <= kills * BATCH, "{unseen} hand-outs were counted but not received");
    println!("{} dead letters, {unseen} hand-outs that died with their process", buried.len());
}
