//! A client that waits for a lock that it holds itself.

use crate::connect;
use crate::secrets::Printed;
use docent::{Client, Mutex, RwLock};
use docent_battery::Backend;
use docent_tests::soon;
use std::time::Duration;

const LINE: &str = "waiting for a lock that this client itself holds";

/// Returns how often the log has the line, after the client has waited for `wait` for a lock held by
/// `holder`.
async fn logged(wait: Duration, holder: impl AsyncFn(&Client, Client) -> Client) -> usize {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let holder = holder(&client, other).await;
    let _guard = soon(Mutex::new(&holder, "/a").unwrap().acquire()).await.unwrap();
    let acquire = Mutex::new(&client, "/a").unwrap().acquire();
    let result = tokio::time::timeout(wait, acquire).await;
    assert!(result.is_err(), "{result:?}");
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
async fn an_error_says_that_the_holder_is_this_very_client() {
    let server = Backend::Memory.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let lock = RwLock::new(&client, "/rw").unwrap();
    let (_guard, mutex) = (soon(lock.read()).await.unwrap(), Mutex::new(&client, "/a").unwrap());
    let _held = soon(mutex.acquire()).await.unwrap();
    for error in [
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
