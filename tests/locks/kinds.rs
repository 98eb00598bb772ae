//! Two kinds of locks at one path: one of them is refused, and both never hold together.

use crate::connect;
use docent::locks::AcquireError;
use docent::{Client, CreateMode, Error, ErrorKind, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, both_backends};
use docent_tests::{soon, until};
use futures_util::future::join_all;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Barrier;

const KAZOO: &str = "/lock/8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__";
const KAZOO_READER: &str = "/lock/8eb6557ec51a32d1e0cb91e4d5e9a5c5__rlock__";

/// Checks that an acquire was refused because of another kind, and that the error names both kinds.
fn is_refused<T: Debug>(acquired: Result<T, AcquireError>, own: &str, peer: &str) {
    let Err(AcquireError::Core(error)) = acquired else { panic!("not refused: {acquired:?}") };
    names_both(&error, own, peer);
}

fn names_both(error: &Error, own: &str, peer: &str) {
    assert_eq!(error.kind(), ErrorKind::MixedKinds, "{error}");
    assert!(!error.is_retryable());
    let text = error.to_string();
    assert!(text.contains(own) && text.contains(peer), "{text}");
}

/// Names of the lock's children.
async fn names(client: &Client) -> Vec<String> {
    client.children("/lock").await.map_or_else(|_| Vec::new(), |children| children.names)
}

/// Waits until the lock has that many children.
async fn until_children(client: &Client, count: usize) {
    until(async || names(client).await.len() == count).await;
}

both_backends! {
    async fn a_mutex_and_a_read_write_lock_at_one_path_refuse_each_other(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (mutex, lock) = (Mutex::new(&client, "/lock").unwrap(), RwLock::new(&other, "/lock").unwrap());

        let held = soon(mutex.acquire()).await.unwrap();
        is_refused(soon(lock.write()).await, "read/write lock", "mutex");
        is_refused(soon(lock.read()).await, "read/write lock", "mutex");
        is_refused(soon(lock.try_read()).await, "read/write lock", "mutex");
        is_refused(soon(lock.try_write()).await, "read/write lock", "mutex");
        until_children(&client, 1).await;
        soon(held.release()).await.unwrap();

        let read = soon(lock.read()).await.unwrap();
        is_refused(soon(mutex.acquire()).await, "mutex", "read/write lock");
        is_refused(soon(mutex.try_acquire()).await, "mutex", "read/write lock");
        soon(read.release()).await.unwrap();
        let written = soon(lock.write()).await.unwrap();
        is_refused(soon(mutex.acquire()).await, "mutex", "read/write lock");
        let read = soon(written.downgrade()).await.unwrap();
        is_refused(soon(mutex.acquire()).await, "mutex", "read/write lock");
        soon(read.release()).await.unwrap();
        until_children(&client, 0).await;
        soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
    }

    async fn a_refused_contender_of_another_kind_does_not_disturb_the_line(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (mutex, lock) = (Mutex::new(&client, "/lock").unwrap(), RwLock::new(&other, "/lock").unwrap());
        let held = soon(mutex.acquire()).await.unwrap();
        let (second, third) = (tokio::spawn(mutex.acquire()), tokio::spawn(mutex.acquire()));
        until_children(&client, 3).await;
        is_refused(soon(lock.write()).await, "read/write lock", "mutex");
        // The test leaves a later node of the other kind, as if its client did not check. The earlier waiters
        // still get the lock.
        let later = format!("/lock/_c_{}-__WRIT__", "9a794062-0b31-421c-9cfe-0699f14437da");
        other.create(&later, "", CreateMode::EphemeralSequential).await.unwrap();
        soon(held.release()).await.unwrap();
        for waiting in [second, third] {
            soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
        }
        is_refused(soon(mutex.acquire()).await, "mutex", "read/write lock");
    }

    async fn contenders_of_two_kinds_that_arrive_together_never_both_hold(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..4).map(|_| connect(&server))).await;
        let (mutexes, readers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut granted = 0;
        for _ in 0..25 {
            let start = Arc::new(Barrier::new(clients.len()));
            let contend = clients.iter().enumerate().map(|(n, client)| {
                let (client, start) = (client.clone(), Arc::clone(&start));
                let (own, peer) = match n % 2 {
                    0 => (Arc::clone(&mutexes), Arc::clone(&readers)),
                    _ => (Arc::clone(&readers), Arc::clone(&mutexes)),
                };
                tokio::spawn(async move {
                    start.wait().await;
                    let check = |inside: usize| {
                        assert!(inside == 0, "both kinds hold");
                    };
                    if n % 2 == 0 {
                        let Ok(guard) = Mutex::new(&client, "/lock").unwrap().acquire().await else { return 0 };
                        own.fetch_add(1, Ordering::SeqCst);
                        check(peer.load(Ordering::SeqCst));
                        client.sync("/").await.unwrap();
                        check(peer.load(Ordering::SeqCst));
                        own.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    } else {
                        let Ok(guard) = RwLock::new(&client, "/lock").unwrap().read().await else { return 0 };
                        own.fetch_add(1, Ordering::SeqCst);
                        check(peer.load(Ordering::SeqCst));
                        client.sync("/").await.unwrap();
                        check(peer.load(Ordering::SeqCst));
                        own.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    }
                    1
                })
            });
            granted += soon(join_all(contend)).await.into_iter().map(Result::unwrap).sum::<usize>();
            until_children(&clients[0], 0).await;
        }
        assert!(granted >= 25, "the first of each round must be granted: {granted}");
    }

    async fn a_kazoo_lock_is_refused_unless_configured_as_a_neighbour(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let peer = other.create(KAZOO, "", CreateMode::EphemeralSequential).await.unwrap().path;
        is_refused(soon(Mutex::new(&client, "/lock").unwrap().acquire()).await, "mutex", "kazoo");
        is_refused(soon(RwLock::new(&client, "/lock").unwrap().read()).await, "read/write lock", "kazoo");
        let configured = Mutex::builder(&client, "/lock").neighbours("__lock__").build().unwrap();
        assert!(matches!(soon(configured.try_acquire()).await, Err(AcquireError::Busy(_))));
        other.delete(&peer, None).await.unwrap();
        other.create(KAZOO_READER, "", CreateMode::EphemeralSequential).await.unwrap();
        is_refused(soon(configured.acquire()).await, "mutex", "kazoo");
        let configured = with_kazoo_readers(&client);
        is_refused(soon(configured.write()).await, "read/write lock", "kazoo read lock");
    }

    async fn a_semaphore_and_a_mutex_at_one_path_refuse_each_other(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (mutex, semaphore) =
            (Mutex::new(&client, "/lock").unwrap(), Semaphore::new(&other, "/lock", 2).unwrap());
        let held = soon(mutex.acquire()).await.unwrap();
        is_refused(soon(semaphore.acquire()).await, "semaphore", "mutex");
        is_refused(soon(semaphore.try_acquire()).await, "semaphore", "mutex");
        assert_eq!(client.children("/lock").await.unwrap().names.len(), 1, "no node may be created");
        soon(held.release()).await.unwrap();
        let permit = soon(semaphore.acquire()).await.unwrap();
        is_refused(soon(mutex.acquire()).await, "mutex", "semaphore");
        // No task waits for a turn, so the servers delete the folder of the turns.
        until(async || names(&client).await == ["leases"]).await;
        is_refused(soon(mutex.acquire()).await, "mutex", "semaphore");
        is_refused(soon(mutex.try_acquire()).await, "mutex", "semaphore");
        until(async || names(&client).await == ["leases"]).await;
        soon(permit.release()).await.unwrap();
        soon(semaphore.reset()).await.unwrap();
        soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
        // A semaphore that was used before checks again.
        let held = soon(mutex.acquire()).await.unwrap();
        is_refused(soon(semaphore.acquire()).await, "semaphore", "mutex");
        drop(held);
    }

    async fn a_refused_contender_leaves_no_ticket(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(RwLock::new(&other, "/lock").unwrap().read()).await.unwrap();
        for _ in 0..5 {
            is_refused(soon(Mutex::new(&client, "/lock").unwrap().acquire()).await, "mutex", "read/write lock");
        }
        until_children(&other, 1).await;
        soon(held.verify()).await.unwrap();
    }
}

fn with_kazoo_readers(client: &Client) -> RwLock {
    RwLock::builder(client, "/lock").neighbour_writers("__lock__").build().unwrap()
}
