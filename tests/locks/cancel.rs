//! A dropped acquire leaves nothing behind, wherever it was dropped.

use crate::order::until_waiting;
use crate::{both_backends, builder, connect};
use docent::locks::AcquireError;
use docent::{Client, Mutex, RwLock, Semaphore};
use docent_battery::Backend;
use docent_battery::battery::abandon_at;
use docent_tests::{soon, until};
use std::time::Duration;

/// Checks that the line becomes empty and another client gets the lock.
async fn line_is_free(client: &Client, other: &Client) {
    let mutex = Mutex::new(client, "/lock").unwrap();
    until_waiting(&mutex, 0).await;
    soon(soon(Mutex::new(other, "/lock").unwrap().acquire()).await.unwrap().release()).await.unwrap();
}

/// Number of tickets in the line right after the acquire, which already had its ticket, timed out behind a
/// holder.
async fn tickets_after<T>(
    acquire: impl Future<Output = Result<T, AcquireError>>,
    participants: impl AsyncFn() -> usize,
) -> usize {
    let (acquired, ()) = tokio::join!(acquire, until(async || participants().await >= 2));
    assert!(matches!(acquired, Err(AcquireError::TimedOut(_))), "{:?}", acquired.err());
    participants().await
}

both_backends! {
    async fn an_acquire_dropped_at_any_poll_while_disconnected_leaves_no_node(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        for polls in 0..4 {
            proxy.cut().await;
            let acquire = tokio::time::timeout(
                Duration::from_millis(50),
                abandon_at(polls, mutex.acquire()),
            );
            assert!(!matches!(acquire.await, Ok(Some(_))), "acquired without a server");
            proxy.heal().await.unwrap();
            line_is_free(&client, &other).await;
        }
    }

    async fn a_client_does_not_see_the_ticket_of_its_own_acquire_that_timed_out(backend: Backend) {
        const WAIT: Duration = Duration::from_secs(1);
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (mutex, held) = (Mutex::new(&client, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
        let (lock, read) = (RwLock::new(&client, "/rw").unwrap(), RwLock::new(&other, "/rw").unwrap());
        let (semaphore, taken) = (Semaphore::new(&client, "/s", 1).unwrap(), Semaphore::new(&other, "/s", 1).unwrap());
        let _holders = (soon(held.acquire()).await.unwrap(), soon(read.read()).await.unwrap(), soon(taken.acquire()).await.unwrap());
        let listed = soon(async {
            tokio::join!(
                tickets_after(mutex.acquire_timeout(WAIT), async || mutex.participants().await.unwrap().len()),
                tickets_after(lock.write_timeout(WAIT), async || lock.participants().await.unwrap().len()),
                tickets_after(semaphore.acquire_timeout(WAIT), async || semaphore.participants().await.unwrap().len()),
            )
        }).await;
        assert_eq!(listed, (1, 1, 1), "only the holders may be listed");
    }
}

#[tokio::test]
async fn a_guard_dropped_outside_a_runtime_releases_and_does_not_panic() {
    let server = Backend::Embedded.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    std::thread::spawn(move || drop(guard)).join().unwrap();
    line_is_free(&client, &other).await;
}
