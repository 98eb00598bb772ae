//! A guard is lost in time even if nothing keeps it any more, because the client's own tasks have panicked,
//! ended or are blocked.

use docent::locks::AcquireError;
use docent::time::{BootClock, Clock, Timestamp};
use docent::{Client, ConnectionState, ErrorKind, LostReason, MultiLock, Mutex};
use docent_battery::{Backend, TestServer};
use docent_tests::{SHORT_SESSION, builder, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{self, Runtime};

/// Name of the threads that run a client's tasks.
const THREAD: &str = "client";

/// Session timeout, so long that no lease ends during the test.
const LONG_SESSION: Duration = Duration::from_secs(600);

/// A clock that panics once, on the client's own threads, when it is triggered.
#[derive(Debug, Clone, Default)]
struct Panics(Arc<AtomicBool>);

impl Clock for Panics {
    fn now(&self) -> Timestamp {
        let on_clients_thread = std::thread::current().name() == Some(THREAD);
        assert!(
            !on_clients_thread || !self.0.swap(false, Ordering::SeqCst),
            "the clock panics, as intended by this test"
        );
        BootClock.now()
    }
}

/// Connects a client whose tasks run on separate threads.
async fn client(server: &TestServer, timeout: Duration, clock: impl Clock) -> (Client, Runtime) {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(THREAD)
        .enable_all()
        .build()
        .unwrap();
    server.as_embedded().unwrap().set_session_timeouts(Duration::ZERO, LONG_SESSION);
    let settings = builder(server, server.connect_string()).session_timeout(timeout).clock(clock);
    let client = runtime.spawn(settings.connect()).await.unwrap().unwrap();
    (client, runtime)
}

/// Checks that a lock's holder learns of the loss when `end` ends the client's tasks.
async fn is_lost_when(end: impl FnOnce(&Panics, Runtime)) {
    let server = Backend::Embedded.start().await;
    let clock = Panics::default();
    let (client, runtime) = client(&server, LONG_SESSION, clock.clone()).await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    let more = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
    let all = soon(MultiLock::new(more.each_ref()).unwrap().acquire()).await.unwrap();
    let (token, all_token, mut state) = (guard.token(), all.token(), client.state());
    let waiting = tokio::spawn({
        let other = Mutex::new(&client, "/lock").unwrap();
        async move { other.acquire().await.map(drop) }
    });
    crate::order::until_waiting(&Mutex::new(&client, "/lock").unwrap(), 2).await;
    end(&clock, runtime);
    assert_eq!(soon(guard.lost()).await, LostReason::Closed);
    soon(token.cancelled()).await;
    assert_eq!(soon(all.lost()).await, LostReason::Closed);
    soon(all_token.cancelled()).await;
    assert!(!guard.is_held() && !all.is_held());
    // No caller waits forever for a client that has stopped.
    assert_eq!(soon(state.reached(ConnectionState::Closed)).await.unwrap(), ConnectionState::Closed);
    let AcquireError::Core(error) = soon(waiting).await.unwrap().unwrap_err() else { panic!() };
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(soon(client.get("/lock")).await.unwrap_err().kind(), ErrorKind::Closed);
    soon(client.close()).await;
}

#[tokio::test]
async fn a_guard_is_lost_when_the_clients_supervisor_panics() {
    is_lost_when(|clock, runtime| {
        clock.0.store(true, Ordering::SeqCst);
        // Keeps the runtime running for the client's other tasks.
        std::mem::forget(runtime);
    })
    .await;
}

#[tokio::test]
async fn a_guard_is_lost_when_the_runtime_of_its_client_is_shut_down() {
    is_lost_when(|_, runtime| runtime.shutdown_background()).await;
}

#[tokio::test]
async fn a_guard_is_lost_with_its_lease_when_the_clients_threads_are_blocked() {
    let server = Backend::Embedded.start().await;
    let (client, runtime) = client(&server, SHORT_SESSION, BootClock).await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let (started, is_blocked) = tokio::sync::oneshot::channel();
    runtime.spawn(async move {
        let _ = started.send(());
        let _ = blocked.recv();
    });
    soon(is_blocked).await.unwrap();
    assert_eq!(soon(guard.lost()).await, LostReason::LeaseExpired);
    assert!(!guard.is_held());
    drop(unblock);
    soon(client.close()).await;
    runtime.shutdown_background();
}
