//! Many items, producers and consumers, some of which are killed.

use docent::queue::AckError;
use docent::{Client, Delivery, ErrorKind, Fence, Queue};
use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_tests::{builder, soon, while_progressing};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

const PRODUCERS: u64 = 4;
const CONSUMERS: usize = 4;
/// Items that a consumer takes in one batch.
const BATCH: usize = 20;
/// Session timeout, longer than any pause of the machine, so only killed consumers lose their items.
const SESSION: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken {
    fence: Fence,
    name: String,
    item: u64,
    deliveries: u32,
}

/// Items that consumers took.
#[derive(Debug, Default)]
struct Log {
    taken: Vec<Taken>,
    acked: HashMap<u64, usize>,
    /// Items whose acknowledgement has an unknown outcome.
    open: HashSet<u64>,
    given_back: usize,
}

type Shared = Arc<Mutex<Log>>;

async fn connect(server: &TestServer) -> Client {
    builder(server, server.connect_string()).session_timeout(SESSION).connect().await.unwrap()
}

fn queue(client: &Client) -> Queue<u64> {
    crate::jobs::builder(client).unbounded().unlimited_deliveries().build().unwrap()
}

/// Puts the producer's items in order, one by one and in groups.
async fn produce(queue: Queue<u64>, producer: u64, count: u64) {
    let items: Vec<_> = (0..count).map(|item| producer * count + item).collect();
    for (number, some) in items.chunks(25).enumerate() {
        match number % 10 {
            0 => {
                for item in some {
                    queue.put(item).await.unwrap();
                }
            }
            _ => queue.put_all(some).await.unwrap(),
        }
    }
}

async fn consume(queue: Queue<u64>, log: Shared) {
    loop {
        let Ok(batch) = queue.take_batch(BATCH).await else { return };
        let items: Vec<_> = batch.iter().map(|delivery| *delivery.item()).collect();
        log.lock().unwrap().taken.extend(batch.iter().map(|delivery| Taken {
            fence: delivery.fence(),
            name: delivery.name().to_owned(),
            item: *delivery.item(),
            deliveries: delivery.deliveries().unwrap(),
        }));
        if items[0] % 97 == 0 && batch[0].deliveries() == Some(1) {
            log.lock().unwrap().given_back += items.len();
            drop(batch);
            continue;
        }
        // The outcome is unknown until the reply arrives, and forever if this consumer is killed before.
        log.lock().unwrap().open.extend(&items);
        let acked = Delivery::ack_all(batch).await;
        let mut log = log.lock().unwrap();
        match acked {
            Ok(()) => {
                for item in items {
                    log.open.remove(&item);
                    *log.acked.entry(item).or_default() += 1;
                }
            }
            Err(AckError::Core(error)) if error.may_have_applied() => {}
            Err(error) => {
                let lost = matches!(&error, AckError::Lost(_));
                let closed = matches!(&error, AckError::Core(error) if error.kind() == ErrorKind::Closed);
                assert!(lost || closed, "{error:?}");
                items.iter().for_each(|item| {
                    log.open.remove(item);
                });
            }
        }
    }
}

/// A consumer that can be killed. It has its own runtime, like a process.
struct Consumer {
    client: Client,
    runtime: Runtime,
}

impl Consumer {
    async fn start(server: &TestServer, log: &Shared) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = {
            let _entered = runtime.enter();
            builder(server, server.connect_string()).session_timeout(SESSION).build().unwrap()
        };
        client.exists("/").await.unwrap();
        runtime.spawn(consume(queue(&client), Arc::clone(log)));
        Self { client, runtime }
    }

    /// Ends the consumer like a dying process: its items return only when its session ends.
    async fn kill(self, server: &TestServer) {
        let session = self.client.session_id().unwrap();
        self.runtime.shutdown_background();
        server.expire(session).await.unwrap();
    }
}

/// Checks the items that consumers took against the items put.
fn check(log: &Log, total: u64, kills: usize) {
    let known: HashSet<u64> = log.acked.keys().copied().collect();
    assert!(log.acked.values().all(|times| *times == 1), "an item was acknowledged twice");
    for item in 0..total {
        assert!(known.contains(&item) || log.open.contains(&item), "item {item} was lost");
    }
    assert!(known.iter().all(|item| *item < total), "an item was never put");
    // An acknowledged put is exactly one item.
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let mut items: HashMap<u64, &str> = HashMap::new();
    for taken in &log.taken {
        assert_eq!(*names.entry(&taken.name).or_insert(taken.item), taken.item);
        assert_eq!(*items.entry(taken.item).or_insert(&taken.name), taken.name, "an item was put twice");
    }
    // Each producer's items are in that producer's order.
    let count = total / PRODUCERS;
    let mut last: HashMap<u64, u64> = HashMap::new();
    for item in names.values() {
        let before = last.insert(item / count, *item);
        assert!(before < Some(*item), "{before:?} came before {item}");
    }
    // First claims are in the order of the queue.
    let mut first: Vec<_> = log.taken.iter().filter(|taken| taken.deliveries == 1).collect();
    first.sort_by(|one, other| (one.fence, &one.name).cmp(&(other.fence, &other.name)));
    let disorder = first.windows(2).find(|pair| pair[0].name >= pair[1].name);
    assert!(disorder.is_none(), "first claims are not in order: {disorder:?}");
    assert!(first.len() + kills * BATCH >= usize::try_from(total).unwrap());
    // Every claim is counted, and nothing else is.
    let mut counts: HashMap<u64, Vec<(Fence, u32)>> = HashMap::new();
    for taken in &log.taken {
        counts.entry(taken.item).or_default().push((taken.fence, taken.deliveries));
    }
    let mut more = 0;
    for counts in counts.values_mut() {
        counts.sort_unstable();
        assert!(counts.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{counts:?}");
        more += counts.last().map_or(0, |(_, count)| *count as usize - 1);
    }
    let most = log.given_back + kills * BATCH;
    assert!(more <= most, "{more} claims more than items, but at most {most} were lost or given back");
}

both_backends_in_real_time! {
    async fn nothing_is_lost_doubled_or_out_of_order_when_consumers_are_killed(backend: Backend) {
        let total = crate::soak::items(6_000);
        let server = backend.start().await;
        let judge = connect(&server).await;
        let log = Shared::default();
        let mut producers = JoinSet::new();
        for producer in 0..PRODUCERS {
            let client = connect(&server).await;
            producers.spawn(produce(queue(&client), producer, total / PRODUCERS));
        }
        let mut consumers = Vec::new();
        for _ in 0..CONSUMERS {
            consumers.push(Consumer::start(&server, &log).await);
        }
        let progress = || {
            let log = log.lock().unwrap();
            log.taken.len() + log.acked.len()
        };
        let mut kills = 0;
        let work = async {
            let mut put = 0;
            while put < PRODUCERS || !queue(&judge).is_empty().await.unwrap() {
                tokio::time::sleep(Duration::from_millis(100)).await;
                while let Some(ended) = producers.try_join_next() {
                    ended.unwrap();
                    put += 1;
                }
                if kills < 20 {
                    kills += 1;
                    let victim = consumers.remove(kills * 7 % CONSUMERS);
                    victim.kill(&server).await;
                    consumers.push(Consumer::start(&server, &log).await);
                }
            }
        };
        while_progressing(progress, work).await;
        for consumer in consumers {
            soon(consumer.client.close()).await;
            consumer.runtime.shutdown_background();
        }
        check(&log.lock().unwrap(), total, kills);
        println!("{total} items, {kills} consumers killed");
    }
}
