//! Two guards never hold one lock, even if a holder's process was suspended before it acquired the lock.

use crate::builder;
use docent::Mutex;
use docent::client::ClientBuilder;
use docent::locks::MutexGuard;
use docent::server::Follower;
use docent_battery::Backend;
use docent_tests::soon;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::oneshot;

/// Relay time that the clients assume, which is also the followers' actual relay time here.
const RELAY: Duration = Duration::from_millis(500);
const SESSION: Duration = Duration::from_secs(4);

/// Three quarters of the timeout.
const STALL: Duration = Duration::from_secs(3);

/// Stalls, acquires the lock, and immediately cuts its follower off from the leader. The guard lives until it
/// is `dismissed`.
async fn hold_after_a_stall(
    builder: ClientBuilder,
    follower: &Follower,
    granted: oneshot::Sender<Arc<MutexGuard>>,
    dismissed: oneshot::Receiver<()>,
) {
    let client = builder.connect().await.unwrap();
    let mutex = Mutex::new(&client, "/lock").unwrap();
    // This blocks the runtime, but not the network.
    thread::sleep(STALL);
    let guard = Arc::new(mutex.acquire().await.unwrap());
    follower.cut_off();
    assert!(granted.send(Arc::clone(&guard)).is_ok());
    let _ = dismissed.await;
}

#[tokio::test]
async fn after_a_stall_and_a_cut_no_two_guards_hold_one_lock() {
    let server = Backend::Embedded.start().await;
    let leader = server.as_embedded().unwrap();
    let follower = leader.follower().relay_interval(RELAY).sync_limit(SESSION * 10).start().await.unwrap();
    let settings =
        |connect_string| builder(&server, connect_string).session_timeout(SESSION).server_tick(RELAY);
    let (of_first, of_next) = (settings(follower.connect_string()), settings(leader.connect_string()));
    let next = of_next.connect().await.unwrap();
    let (granted, first) = oneshot::channel();
    let (dismiss, dismissed) = oneshot::channel();
    let stalled = thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(hold_after_a_stall(of_first, &follower, granted, dismissed));
    });
    let first = soon(first).await.unwrap();
    let mutex = Mutex::new(&next, "/lock").unwrap();
    let second = soon(mutex.acquire()).await.unwrap();
    assert!(!first.is_held(), "the first guard is held together with the second");
    assert!(second.fence() > first.fence());
    dismiss.send(()).unwrap();
    drop(first);
    soon(tokio::task::spawn_blocking(|| stalled.join())).await.unwrap().unwrap();
}
