//! Requests of each recipe's operations, as the appendixes of the guide name them.

use docent::client::ParentKind;
use docent::guard::Guard;
use docent::locks::{Partitioner, TimedLease};
use docent::{Barrier, Client, Counter, Membership, MultiLock, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, FrameKind, TestServer, Traced, both_backends, round_trips};
use docent_proto::OpCode;
use docent_tests::{builder, soon};
use std::time::Duration;

both_backends! {
    async fn each_operation_takes_the_requests_that_its_page_names(backend: Backend) {
        let server = backend.start().await;
        // Containers would be deleted once they are empty, and created again.
        let client = builder(&server, server.connect_string()).parents(ParentKind::Persistent);
        let client = client.connect().await.unwrap();
        // The first round creates the folders.
        for checks in [false, true] {
            let meter = Meter { server: &server, client: &client, checks };
            locks(&meter).await;
            sets(&meter).await;
            barriers(&meter).await;
            leases(&meter).await;
            values(&meter).await;
        }
    }
}

async fn locks(meter: &Meter<'_>) {
    let mutex = Mutex::new(meter.client, "/mutex").unwrap();
    let cycle = async || release(soon(mutex.acquire()).await.unwrap()).await;
    meter.count("mutex, acquire and release", 3, cycle).await;
    let lock = RwLock::new(meter.client, "/rw").unwrap();
    let cycle = async || release(soon(lock.read()).await.unwrap()).await;
    meter.count("read/write lock, read and release", 3, cycle).await;
    let cycle = async || release(soon(lock.write()).await.unwrap()).await;
    meter.count("read/write lock, write and release", 3, cycle).await;
    let cycle = async || {
        soon(lock.write()).await.unwrap().downgrade().await.unwrap().release().await.unwrap();
    };
    meter.count("read/write lock, write, downgrade and release", 5, cycle).await;
}

async fn sets(meter: &Meter<'_>) {
    let semaphore = Semaphore::new(meter.client, "/semaphore", 100).unwrap();
    for (name, permits, most) in [("first", 1, 9), ("1 permit", 1, 7), ("10 permits", 10, 16)] {
        let cycle = async || release(soon(semaphore.acquire_many(permits)).await.unwrap()).await;
        meter.count(&format!("semaphore, {name}, acquire and release"), most, cycle).await;
    }
    for (locks, most) in [(2, 8), (4, 16)] {
        let mutexes = (0..locks).map(|lock| Mutex::new(meter.client, &format!("/multi/{lock}")).unwrap());
        let all = MultiLock::new(mutexes).unwrap();
        let cycle = async || release(soon(all.acquire()).await.unwrap()).await;
        meter.count(&format!("multi-lock, {locks} mutexes, acquire and release"), most, cycle).await;
    }
    let shards = ["a", "b", "c", "d"];
    let partitioner = Partitioner::new(meter.client, "/shards", shards).unwrap();
    let cycle = async || {
        soon(partitioner.acquire()).await.unwrap().release().await.unwrap();
    };
    cycle().await;
    meter.count("partitioner, 4 items, acquire and release", 16, cycle).await;
    soon(partitioner.leave()).await.unwrap();
}

async fn barriers(meter: &Meter<'_>) {
    let barrier = Barrier::new(meter.client, "/barrier").unwrap();
    meter.count("barrier, set", 1, async || assert!(soon(barrier.set()).await.unwrap())).await;
    meter.count("barrier, remove", 3, async || soon(barrier.remove()).await.unwrap()).await;
    meter.count("barrier, wait, not set", 3, async || soon(barrier.wait()).await.unwrap()).await;
}

async fn leases(meter: &Meter<'_>) {
    let lease = || TimedLease::new(meter.client, "/lease", Duration::from_secs(60)).unwrap();
    let (own, other) = (lease(), lease());
    let obtain = async || assert!(soon(own.try_obtain()).await.unwrap().is_some());
    meter.count("timed lease, obtain", 5, obtain).await;
    meter.count("timed lease, extend", 5, obtain).await;
    let refused = async || assert!(soon(other.try_obtain()).await.unwrap().is_none());
    meter.count("timed lease, held by another identity", 4, refused).await;
    meter.count("timed lease, give back", 6, async || assert!(soon(own.give_back()).await.unwrap())).await;
}

async fn values(meter: &Meter<'_>) {
    let counter = Counter::<i64>::new(meter.client, "/counter").unwrap();
    meter.count("counter, increment", 2, async || assert!(soon(counter.increment()).await.is_ok())).await;
    let group = Membership::new(meter.client, "/group").unwrap();
    let mut member = None;
    meter
        .count("membership, join", 2, async || member = Some(soon(group.join("a", "")).await.unwrap()))
        .await;
    let leave = async || assert!(soon(member.unwrap().leave()).await.is_ok());
    meter.count("membership, leave", 3, leave).await;
}

struct Meter<'a> {
    server: &'a TestServer,
    client: &'a Client,
    checks: bool,
}

impl Meter<'_> {
    /// Checks that `operation` takes at most that many requests.
    async fn count(&self, name: &str, most: usize, operation: impl AsyncFnOnce()) {
        // Everything that was submitted before is sent before this request.
        soon(self.client.sync("/")).await.unwrap();
        let before = self.server.front().trace().len();
        operation().await;
        soon(self.client.sync("/")).await.unwrap();
        let trace = awaited(&self.server.front().trace()[before..]);
        let (count, trips) = (requests(&trace) - 1, round_trips(&trace) - 1);
        if self.checks {
            println!("{name}: {count} requests, {trips} round trips");
            assert!(count <= most, "{name}: {count} requests instead of {most}: {trace:#?}");
        }
    }
}

/// Releases a guard, and waits until its node is deleted.
async fn release(guard: impl Guard) {
    guard.release().await.unwrap();
}

/// Number of requests, without pings.
fn requests(trace: &[Traced]) -> usize {
    trace.iter().filter(|frame| frame.kind == FrameKind::Request && frame.op != Some(OpCode::Ping)).count()
}

/// Omits the watches of holders on their own nodes, because no caller awaits their replies.
fn awaited(trace: &[Traced]) -> Vec<Traced> {
    let is_ticket = |path: &String| ["lock-", "lease-", "__"].iter().any(|marker| path.contains(marker));
    let is_watch =
        |frame: &Traced| frame.op == Some(OpCode::GetData) && frame.path.as_ref().is_some_and(is_ticket);
    // Recipes stop the watches of earlier operations in the background.
    let is_late = |frame: &Traced| frame.op == Some(OpCode::RemoveWatches);
    trace.iter().filter(|frame| !is_watch(frame) && !is_late(frame)).cloned().collect()
}
