//! A client that waits for a lock that it holds itself.

use crate::connect;
use crate::secrets::Printed;
use docent::locks::SharedMutex;
use docent::{Client, Mutex, RwLock, Semaphore};
use docent_battery::Backend;
use docent_tests::soon;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

const LINE: &str = "waiting for a lock or permits that this client itself holds";

/// Returns how often the log has the line, after the client has waited for `wait` for a lock held by
/// `holder`.
async fn logged(wait: Duration, holder: impl AsyncFn(&Client, Client) -> Client) -> usize {
    logged_while(async |client, other| {
        let holder = holder(client, other).await;
        let _guard = soon(Mutex::new(&holder, "/a").unwrap().acquire()).await.unwrap();
        waits(wait, Mutex::new(client, "/a").unwrap().acquire()).await;
    })
    .await
}

/// Awaits an acquire for `wait`, in which it must not end.
async fn waits<T: Debug>(wait: Duration, acquire: impl Future<Output = T>) {
    let result = tokio::time::timeout(wait, acquire).await;
    assert!(result.is_err(), "{result:?}");
}

/// Returns how often the log has the line after `run` with two clients.
async fn logged_while(run: impl AsyncFn(&Client, Client)) -> usize {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    run(&client, other).await;
    let lines = printed.lines_with(LINE);
    assert!(
        lines.iter().all(|line| line.contains("WARN") && line.contains("/a") && line.contains("client="))
    );
    lines.len()
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_its_own_lock_is_logged_after_seconds_and_then_each_minute() {
    let own = async |client: &Client, _| client.clone();
    assert_eq!(logged(Duration::from_secs(4), own).await, 0);
    assert_eq!(logged(Duration::from_secs(60), own).await, 1);
    assert_eq!(logged(Duration::from_secs(130), own).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_lock_of_another_client_is_not_logged() {
    assert_eq!(logged(Duration::from_secs(130), async |_: &Client, other| other).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_shared_mutex_that_its_own_client_holds_is_logged_once() {
    let twice = async |client: &Client, _| {
        let mutex = SharedMutex::new(client, "/a").unwrap();
        let _guard = soon(mutex.acquire()).await.unwrap();
        waits(Duration::from_secs(60), mutex.acquire()).await;
    };
    assert_eq!(logged_while(twice).await, 1);
}

#[tokio::test(start_paused = true)]
async fn tasks_that_pass_a_shared_mutex_on_are_not_logged() {
    let busy = async |client: &Client, _| {
        let mutex = SharedMutex::new(client, "/a").unwrap();
        let task = || async {
            for _ in 0..10 {
                let _guard = soon(mutex.acquire()).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        futures_util::future::join_all((0..10).map(|_| task())).await;
    };
    assert_eq!(logged_while(busy).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_beside_a_read_of_the_same_client_is_logged() {
    let both = async |client: &Client, _| {
        let lock = RwLock::new(client, "/a").unwrap();
        let _guard = soon(lock.read()).await.unwrap();
        waits(Duration::from_secs(60), lock.write()).await;
    };
    assert_eq!(logged_while(both).await, 1);
}

#[tokio::test(start_paused = true)]
async fn permits_that_the_waiting_client_itself_has_are_logged() {
    let all = async |client: &Client, _| {
        let semaphore = Semaphore::new(client, "/a", 3).unwrap();
        let _permits = soon(semaphore.acquire_many(2)).await.unwrap();
        waits(Duration::from_secs(60), semaphore.acquire_many(2)).await;
    };
    assert_eq!(logged_while(all).await, 1);
    // Another client's permit suffices.
    let some = async |client: &Client, other: Client| {
        let permits = |client: &Client, n| Semaphore::new(client, "/a", 3).unwrap().acquire_many(n);
        let _guards = (soon(permits(client, 1)).await.unwrap(), soon(permits(&other, 2)).await.unwrap());
        waits(Duration::from_secs(60), permits(client, 2)).await;
    };
    assert_eq!(logged_while(some).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_says_that_the_holder_is_this_very_client() {
    let server = Backend::Memory.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let lock = RwLock::new(&client, "/rw").unwrap();
    let (_guard, mutex) = (soon(lock.read()).await.unwrap(), Mutex::new(&client, "/a").unwrap());
    let _held = soon(mutex.acquire()).await.unwrap();
    let shared = SharedMutex::new(&client, "/s").unwrap();
    let _turn = soon(shared.acquire()).await.unwrap();
    let semaphore = Semaphore::new(&client, "/p", 1).unwrap();
    let _permit = soon(semaphore.acquire()).await.unwrap();
    for error in [
        soon(shared.try_acquire()).await.err(),
        soon(shared.acquire_timeout(Duration::from_secs(2))).await.err(),
        soon(semaphore.try_acquire()).await.err(),
        soon(semaphore.acquire_timeout(Duration::from_secs(2))).await.err(),
        soon(mutex.try_acquire()).await.err(),
        soon(mutex.acquire_timeout(Duration::from_secs(2))).await.err(),
        soon(lock.write_timeout(Duration::from_secs(2))).await.err(),
    ] {
        let error = error.unwrap();
        assert!(error.to_string().contains("held by this client ("), "{error}");
        assert!(error.not_acquired().unwrap().held_by_this_client());
    }
    let error = soon(Mutex::new(&other, "/a").unwrap().try_acquire()).await.unwrap_err();
    assert!(!error.to_string().contains("this client"), "{error}");
}
