//! Many readers or one writer, no starvation, and no unnecessary wake-ups at a release.

use super::until_in_line;
use crate::{builder, connect};
use docent::locks::{AcquireError, ReadGuard, Role, WriteGuard};
use docent::{Fence, RwLock};
use docent_battery::{Backend, FrameKind, Proxy, TestServer, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::future::{join_all, try_join_all};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const CONTENDERS: usize = 8;

/// Holders that are inside, as the process counts them.
#[derive(Default)]
struct Inside {
    readers: AtomicUsize,
    writer: AtomicBool,
    fences: StdMutex<Vec<Fence>>,
    most_readers: AtomicUsize,
}

impl Inside {
    async fn read(&self, lock: &RwLock) {
        let guard = lock.read().await.unwrap();
        let readers = self.readers.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_readers.fetch_max(readers, Ordering::SeqCst);
        assert!(!self.writer.load(Ordering::SeqCst), "a reader beside a writer");
        assert_eq!(guard.fence(), None);
        docent_tests::pause().await;
        assert!(guard.is_held());
        self.readers.fetch_sub(1, Ordering::SeqCst);
        guard.release().await.unwrap();
    }

    async fn write(&self, lock: &RwLock) {
        let guard = lock.write().await.unwrap();
        assert!(!self.writer.swap(true, Ordering::SeqCst), "two writers");
        assert_eq!(self.readers.load(Ordering::SeqCst), 0, "a writer beside readers");
        self.fences.lock().unwrap().push(guard.fence());
        docent_tests::pause().await;
        assert!(guard.is_held());
        self.writer.store(false, Ordering::SeqCst);
        guard.release().await.unwrap();
    }
}

both_backends! {
    async fn a_writer_is_alone_and_fences_of_writers_increase(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..CONTENDERS).map(|_| connect(&server))).await;
        let inside = Arc::new(Inside::default());
        // Curator's test has the same number.
        let rounds = if backend == Backend::Embedded { 100 } else { 40 };
        let work = clients.iter().enumerate().map(|(n, client)| {
            let (lock, inside) = (RwLock::new(client, "/lock").unwrap(), inside.clone());
            tokio::spawn(async move {
                for round in 0..rounds {
                    match (n * 7 + round * 3) % 4 {
                        0 => inside.write(&lock).await,
                        _ => inside.read(&lock).await,
                    }
                }
            })
        });
        soon(try_join_all(work)).await.unwrap();
        let fences = inside.fences.lock().unwrap();
        assert_eq!(fences.len(), CONTENDERS * rounds / 4);
        assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "fences do not increase");
    }

    async fn a_try_right_after_a_drop_succeeds(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        for round in 0..20 {
            drop(soon(lock.try_write()).await.unwrap_or_else(|error| panic!("write, round {round}: {error}")));
            drop(soon(lock.try_read()).await.unwrap_or_else(|error| panic!("read, round {round}: {error}")));
        }
    }

    async fn readers_without_a_writer_between_hold_together(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..4).map(|_| connect(&server))).await;
        let all_in = Arc::new(Barrier::new(4));
        let readers = clients.iter().map(|client| {
            let (read, all_in) = (RwLock::new(client, "/lock").unwrap().read(), all_in.clone());
            tokio::spawn(async move {
                let guard = read.await.unwrap();
                all_in.wait().await;
                assert!(guard.is_held());
            })
        });
        soon(try_join_all(readers)).await.unwrap();
    }

    async fn a_reader_behind_a_waiting_writer_waits_for_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let (first, writer, second) = reader_writer_reader(&lock).await;
        soon(first.release()).await.unwrap();
        let written = soon(writer).await.unwrap().unwrap();
        let line = soon(lock.participants()).await.unwrap();
        assert_eq!(line.iter().map(|p| p.role).collect::<Vec<_>>(), [Role::Exclusive, Role::Shared]);
        assert!(!second.is_finished(), "the reader joined after the writer");
        soon(written.release()).await.unwrap();
        let _ = soon(second).await.unwrap().unwrap();
    }

    async fn a_waiting_writer_that_gives_up_lets_the_readers_behind_it_in(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let (first, writer, second) = reader_writer_reader(&lock).await;
        writer.abort();
        let second = soon(second).await.unwrap().unwrap();
        assert!(first.is_held() && second.is_held());
    }

    async fn a_release_wakes_the_readers_right_behind_a_writer_and_the_last_reader_one_writer(backend: Backend) {
        let server = backend.start().await;
        let written = soon(RwLock::new(&connect(&server).await, "/lock").unwrap().write()).await.unwrap();
        // In line: two readers, a writer, a reader, each on its own link.
        let waiters = join_all((0..4).map(|_| Waiter::new(&server))).await;
        let mut readers = Vec::new();
        for waiter in &waiters[..2] {
            readers.push(tokio::spawn(waiter.lock.read()));
            waiter.waits().await;
        }
        let writer = tokio::spawn(waiters[2].lock.write());
        waiters[2].waits().await;
        let last = tokio::spawn(waiters[3].lock.read());
        waiters[3].waits().await;
        let woken = |path: &str| waiters.iter().map(|waiter| waiter.was_woken_by(path)).collect::<Vec<_>>();

        let released = written.path();
        soon(written.release()).await.unwrap();
        let mut guards = Vec::new();
        for reader in readers {
            guards.push(soon(reader).await.unwrap().unwrap());
        }
        // The last reader then checks whether the other writer ahead still exists.
        assert_eq!(woken(&released), [true, true, false, true]);
        let (second, first) = (guards.pop().unwrap(), guards.pop().unwrap());
        let (second_path, first_path) = (second.path(), first.path());
        soon(first.release()).await.unwrap();
        assert!(!writer.is_finished() && !last.is_finished());
        soon(second.release()).await.unwrap();
        let written = soon(writer).await.unwrap().unwrap();
        // A reader also receives its own node's event. The writer looks ahead: one reader remains.
        assert_eq!(woken(&first_path)[1..], [false, true, false]);
        assert_eq!(woken(&second_path)[2..], [true, false]);
        assert!(!last.is_finished());
        drop(written);
        let _ = soon(last).await.unwrap().unwrap();
    }

    async fn participants_are_listed_with_their_roles_and_all_holders(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let first = soon(lock.read()).await.unwrap();
        let second = soon(lock.read()).await.unwrap();
        let waiting = tokio::spawn(lock.write());
        until_in_line(&lock, 3).await;
        let line = soon(lock.participants()).await.unwrap();
        assert_eq!(line.iter().map(|p| (p.role, p.holds)).collect::<Vec<_>>(), [
            (Role::Shared, true),
            (Role::Shared, true),
            (Role::Exclusive, false),
        ]);
        assert!(first.path().ends_with(&line[0].name) && second.path().ends_with(&line[1].name));
        assert!(line.windows(2).all(|pair| pair[0].sequence < pair[1].sequence && pair[0].since <= pair[1].since));
        drop((first, second));
        let written = soon(waiting).await.unwrap().unwrap();
        let line = soon(lock.participants()).await.unwrap();
        assert!(line[0].holds && line[0].role == Role::Exclusive && line[0].fence == written.fence());
    }

    async fn a_try_takes_a_free_lock_and_writes_nothing_for_a_held_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let read = soon(lock.try_read()).await.unwrap();
        let also = soon(lock.try_read()).await.unwrap();
        let creates = || server.front().trace().iter().filter(|f| f.is_request(OpCode::Create2)).count();
        let before = creates();
        assert!(matches!(soon(lock.try_write()).await, Err(AcquireError::Busy(_))));
        soon(read.release()).await.unwrap();
        soon(also.release()).await.unwrap();
        assert_eq!(creates(), before);
        let written = soon(lock.try_write()).await.unwrap();
        let before = creates();
        assert!(matches!(soon(lock.try_read()).await, Err(AcquireError::Busy(_))));
        assert!(matches!(soon(lock.try_write()).await, Err(AcquireError::Busy(_))));
        assert_eq!(creates(), before);
        drop(written);
    }

    async fn a_try_to_read_does_not_overtake_a_waiting_writer(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let _read = soon(lock.read()).await.unwrap();
        let waiting = tokio::spawn(lock.write());
        until_in_line(&lock, 2).await;
        assert!(matches!(soon(lock.try_read()).await, Err(AcquireError::Busy(_))));
        waiting.abort();
    }

    async fn a_timeout_bounds_reads_and_writes_and_leaves_no_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write()).await.unwrap();
        let (start, timeout) = (Instant::now(), Duration::from_millis(200));
        let both = async { tokio::join!(lock.read_timeout(timeout), lock.write_timeout(timeout)) };
        let (read, write) = soon(both).await;
        assert!(matches!(read, Err(AcquireError::TimedOut(_))) && matches!(write, Err(AcquireError::TimedOut(_))));
        assert!(start.elapsed() >= timeout);
        until_in_line(&lock, 1).await;
        assert!(written.is_held());
    }
}

type Waiting<G> = JoinHandle<Result<G, AcquireError>>;

/// In line: a reader that holds the lock, a waiting writer and another waiting reader.
async fn reader_writer_reader(lock: &RwLock) -> (ReadGuard, Waiting<WriteGuard>, Waiting<ReadGuard>) {
    let first = soon(lock.read()).await.unwrap();
    let writer = tokio::spawn(lock.write());
    until_in_line(lock, 2).await;
    let second = tokio::spawn(lock.read());
    until_in_line(lock, 3).await;
    (first, writer, second)
}

/// A waiter with its own link.
struct Waiter {
    lock: RwLock,
    proxy: Proxy,
    root: String,
}

impl Waiter {
    async fn new(server: &TestServer) -> Self {
        let proxy = server.proxy().await;
        let client = builder(server, proxy.connect_string()).connect().await.unwrap();
        Self { lock: RwLock::new(&client, "/lock").unwrap(), proxy, root: server.root().to_owned() }
    }

    /// Waits until the waiter watches its own node and one node ahead.
    async fn waits(&self) {
        let set = |trace: &[Traced]| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches));
        soon(self.proxy.until(set)).await;
    }

    fn was_woken_by(&self, path: &str) -> bool {
        let full = format!("{}{path}", self.root);
        let trace = self.proxy.trace();
        trace.iter().any(|f| f.kind == FrameKind::Event && f.path.as_ref() == Some(&full))
    }
}
