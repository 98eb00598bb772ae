//! Round trips of locks, with sessions that immediately send all requests that were submitted together.

use docent::{CreateMode, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, Traced, both_backends, round_trips};
use docent_proto::OpCode;
use docent_tests::{connect, soon};
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Shared};
use std::task::{Context, Wake, Waker};
use std::thread::{self, ThreadId};

both_backends! {
    async fn an_uncontended_acquire_is_one_round_trip_and_with_the_release_two(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        // A container would be deleted after it was empty for long, and re-created.
        client.create("/lock", "", CreateMode::Persistent).await.unwrap();
        let before = server.front().trace().len();
        let guard = soon(mutex.acquire()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 1);
        soon(guard.release()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 2);
    }

    async fn a_free_read_or_write_lock_is_one_round_trip(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        client.create("/lock", "", CreateMode::Persistent).await.unwrap();
        let before = server.front().trace().len();
        let writing = soon(lock.write()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 1);
        soon(writing.release()).await.unwrap();
        let before = server.front().trace().len();
        let first = soon(lock.read()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 1);
        let before = server.front().trace().len();
        let _second = soon(lock.read()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 1, "with another reader");
        drop(first);
    }

    async fn free_permits_are_at_most_four_round_trips_however_many(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for path in ["/semaphore/locks", "/semaphore/leases"] {
            client.create(path, "", CreateMode::Persistent).await.unwrap();
        }
        let semaphore = Semaphore::new(&client, "/semaphore", 4).unwrap();
        for permits in [1, 3] {
            let before = server.front().trace().len();
            let _permits = soon(semaphore.acquire_many(permits)).await.unwrap();
            let trips = round_trips(&awaited(&server.front().trace()[before..]));
            assert!(trips <= 4, "{trips} trips for {permits} permits");
            client.sync("/").await.unwrap();
        }
    }

    async fn an_acquire_without_a_parent_is_at_most_three_round_trips(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        let _guard = soon(Mutex::new(&client, "/deep/below/lock").unwrap().acquire()).await.unwrap();
        assert!(round_trips(&awaited(&server.front().trace()[before..])) <= 3);
    }

    async fn no_acquire_wakes_its_own_running_task(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/mutex").unwrap();
        let (guard, own) = soon(own_wakes(mutex.acquire())).await;
        assert_eq!(own, 0);
        let waiting = tokio::spawn(own_wakes(mutex.acquire()));
        while mutex.participants().await.unwrap().len() < 2 {}
        let (released, own) = soon(own_wakes(guard.unwrap().release())).await;
        released.unwrap();
        assert_eq!(own, 0);
        let (guard, own) = soon(waiting).await.unwrap();
        drop(guard);
        assert_eq!(own, 0, "after a wait");

        let lock = RwLock::new(&client, "/lock").unwrap();
        let (guard, own) = soon(own_wakes(lock.write())).await;
        drop(guard);
        assert_eq!(own, 0);
        let (guard, own) = soon(own_wakes(lock.read())).await;
        drop(guard);
        assert_eq!(own, 0);
    }
}

/// Output of `future`, and how often the future woke its own task while it was polled. Each wake-up makes
/// tokio wake another thread, which costs as much as a round trip.
async fn own_wakes<F: Future>(future: F) -> (F::Output, usize) {
    let (counter, mut future) = (Arc::new(WakeCounter::default()), pin!(future));
    let waker = Waker::from(Arc::clone(&counter));
    let output = poll_fn(|cx| {
        counter.task.register(cx.waker());
        *counter.polled_by.lock().unwrap() = Some(thread::current().id());
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        *counter.polled_by.lock().unwrap() = None;
        polled
    })
    .await;
    (output, counter.own.load(Ordering::Relaxed))
}

#[derive(Default)]
struct WakeCounter {
    task: AtomicWaker,
    polled_by: Shared<Option<ThreadId>>,
    own: AtomicUsize,
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        if *self.polled_by.lock().unwrap() == Some(thread::current().id()) {
            self.own.fetch_add(1, Ordering::Relaxed);
        }
        self.task.wake();
    }
}

/// Omits pings and the watch of a holder on its own node, because no caller awaits their replies.
fn awaited(trace: &[Traced]) -> Vec<Traced> {
    let mut awaited = trace.to_vec();
    awaited.retain(|frame| !matches!(frame.op, Some(OpCode::GetData | OpCode::Ping)));
    awaited
}
