//! Two kinds of locks at one path: one of them is refused, and never do both hold.

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

/// Checks that an acquire was refused for another kind, and that the error names both.
fn is_refused<T: Debug>(acquired: Result<T, AcquireError>, ours: &str, theirs: &str) {
    let Err(AcquireError::Core(error)) = acquired else { panic!("it was not refused: {acquired:?}") };
    names_both(&error, ours, theirs);
}

fn names_both(error: &Error, ours: &str, theirs: &str) {
    assert_eq!(error.kind(), ErrorKind::MixedKinds, "{error}");
    assert!(!error.is_retryable());
    let text = error.to_string();
    assert!(text.contains(ours) && text.contains(theirs), "{text}");
}

/// Names of the lock's children.
async fn names(client: &Client) -> Vec<String> {
    client.children("/lock").await.map_or_else(|_| Vec::new(), |children| children.names)
}

/// Waits until so many children are below the lock.
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

    async fn a_line_goes_on_undisturbed_by_one_of_another_kind_that_is_refused(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (mutex, lock) = (Mutex::new(&client, "/lock").unwrap(), RwLock::new(&other, "/lock").unwrap());
        let held = soon(mutex.acquire()).await.unwrap();
        let (second, third) = (tokio::spawn(mutex.acquire()), tokio::spawn(mutex.acquire()));
        until_children(&client, 3).await;
        is_refused(soon(lock.write()).await, "read/write lock", "mutex");
        // One that came later stays, as if its client did not look: those before it go on.
        let later = format!("/lock/_c_{}-__WRIT__", "9a794062-0b31-421c-9cfe-0699f14437da");
        other.create(&later, "", CreateMode::EphemeralSequential).await.unwrap();
        soon(held.release()).await.unwrap();
        for waiting in [second, third] {
            soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
        }
        is_refused(soon(mutex.acquire()).await, "mutex", "read/write lock");
    }

    async fn contenders_of_two_kinds_that_come_at_once_never_both_hold(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..4).map(|_| connect(&server))).await;
        let (mutexes, readers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut granted = 0;
        for _ in 0..25 {
            let start = Arc::new(Barrier::new(clients.len()));
            let contend = clients.iter().enumerate().map(|(n, client)| {
                let (client, start) = (client.clone(), Arc::clone(&start));
                let (ours, theirs) = match n % 2 {
                    0 => (Arc::clone(&mutexes), Arc::clone(&readers)),
                    _ => (Arc::clone(&readers), Arc::clone(&mutexes)),
                };
                tokio::spawn(async move {
                    start.wait().await;
                    let look = |inside: usize| {
                        assert!(inside == 0, "both kinds hold");
                    };
                    if n % 2 == 0 {
                        let Ok(guard) = Mutex::new(&client, "/lock").unwrap().acquire().await else { return 0 };
                        ours.fetch_add(1, Ordering::SeqCst);
                        look(theirs.load(Ordering::SeqCst));
                        client.sync("/").await.unwrap();
                        look(theirs.load(Ordering::SeqCst));
                        ours.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    } else {
                        let Ok(guard) = RwLock::new(&client, "/lock").unwrap().read().await else { return 0 };
                        ours.fetch_add(1, Ordering::SeqCst);
                        look(theirs.load(Ordering::SeqCst));
                        client.sync("/").await.unwrap();
                        look(theirs.load(Ordering::SeqCst));
                        ours.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    }
                    1
                })
            });
            granted += soon(join_all(contend)).await.into_iter().map(Result::unwrap).sum::<usize>();
            until_children(&clients[0], 0).await;
        }
        assert!(granted >= 25, "of those that came first each is granted: {granted}");
    }

    async fn a_lock_of_kazoos_is_refused_where_it_was_not_told_of(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let theirs = other.create(KAZOO, "", CreateMode::EphemeralSequential).await.unwrap().path;
        is_refused(soon(Mutex::new(&client, "/lock").unwrap().acquire()).await, "mutex", "kazoo");
        is_refused(soon(RwLock::new(&client, "/lock").unwrap().read()).await, "read/write lock", "kazoo");
        let told = Mutex::builder(&client, "/lock").neighbours("__lock__").build().unwrap();
        assert!(matches!(soon(told.try_acquire()).await, Err(AcquireError::Busy(_))));
        other.delete(&theirs, None).await.unwrap();
        other.create(KAZOO_READER, "", CreateMode::EphemeralSequential).await.unwrap();
        is_refused(soon(told.acquire()).await, "mutex", "kazoo");
        let told = told_of_readers(&client);
        is_refused(soon(told.write()).await, "read/write lock", "kazoo's read lock");
    }

    async fn a_semaphore_and_a_mutex_at_one_path_refuse_each_other(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (mutex, semaphore) =
            (Mutex::new(&client, "/lock").unwrap(), Semaphore::new(&other, "/lock", 2).unwrap());
        let held = soon(mutex.acquire()).await.unwrap();
        is_refused(soon(semaphore.acquire()).await, "semaphore", "mutex");
        is_refused(soon(semaphore.try_acquire()).await, "semaphore", "mutex");
        assert_eq!(client.children("/lock").await.unwrap().names.len(), 1, "it made nothing");
        soon(held.release()).await.unwrap();
        let permit = soon(semaphore.acquire()).await.unwrap();
        is_refused(soon(mutex.acquire()).await, "mutex", "semaphore");
        // Nobody waits for a turn, so that the servers remove the folder for that.
        until(async || names(&client).await == ["leases"]).await;
        is_refused(soon(mutex.acquire()).await, "mutex", "semaphore");
        is_refused(soon(mutex.try_acquire()).await, "mutex", "semaphore");
        until(async || names(&client).await == ["leases"]).await;
        soon(permit.release()).await.unwrap();
        soon(semaphore.reset()).await.unwrap();
        soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
        // One that used it before looks again.
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

fn told_of_readers(client: &Client) -> RwLock {
    RwLock::builder(client, "/lock").neighbour_writers("__lock__").build().unwrap()
}
