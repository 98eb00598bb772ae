//! One function for all guards: those of locks, elections and queues.

use crate::connect;
use docent::guard::{Guard, Held, Lost, LostReason};
use docent::{Client, CreateMode, Election, ErrorKind, MultiLock, Mutex, Queue, RwLock, Semaphore};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use std::sync::Arc;

/// Starts work on another task under any kind of guard.
fn spawn<G: Guard + 'static>(guard: G) -> tokio::task::JoinHandle<(G, Result<u32, Lost>)> {
    tokio::spawn(async move {
        let done = guard.run(async { 7 }).await;
        (guard, done)
    })
}

/// Checks a guard that is held.
async fn is_held(guard: &Held, client: &Client, name: &str) {
    assert!(guard.is_held(), "{name}");
    assert!(!guard.token().is_cancelled(), "{name}");
    soon(guard.verify()).await.unwrap();
    let write = guard.transaction().create(&format!("/{name}"), "", CreateMode::Persistent);
    soon(write.commit()).await.unwrap();
    assert!(client.exists(&format!("/{name}")).await.unwrap().is_some(), "{name}");
}

/// Checks a guard that is being lost and returns the reason.
async fn is_lost(guard: &Held, name: &str) -> LostReason {
    let reason = soon(guard.lost()).await;
    assert!(!guard.is_held(), "{name}");
    assert!(guard.token().is_cancelled(), "{name}");
    assert_eq!(guard.verify().await.unwrap_err().kind(), ErrorKind::Lost(reason), "{name}");
    let write = guard.transaction().create("/late", "", CreateMode::Persistent);
    assert_eq!(write.commit().await.unwrap_err().kind(), ErrorKind::Lost(reason), "{name}");
    reason
}

/// Uses one guard, releases it, and loses another one, which `again` acquires.
async fn lives<G: Guard + 'static>(
    client: &Client,
    name: &str,
    fenced: bool,
    first: G,
    again: impl AsyncFn() -> G,
) {
    is_held(&first, client, name).await;
    assert_eq!(first.fence().is_some(), fenced, "{name}");
    let (first, done) = soon(spawn(first)).await.unwrap();
    assert_eq!(done, Ok(7), "{name}");
    soon(first.release()).await.unwrap();

    let second = soon(again()).await;
    let work = Arc::new(());
    let kept = Arc::clone(&work);
    let mut ended = Box::pin(second.run(async move {
        std::future::pending::<()>().await;
        drop(kept);
    }));
    client.close().await;
    assert_eq!(soon(&mut ended).await, Err(Lost { reason: LostReason::Closed }), "{name}");
    assert_eq!(Arc::strong_count(&work), 1, "{name}: the loss must drop the work");
    drop(ended);
    assert_eq!(is_lost(&second, name).await, LostReason::Closed, "{name}");
    assert_eq!(
        soon(second.release()).await.unwrap_err().kind(),
        ErrorKind::Lost(LostReason::Closed),
        "{name}"
    );
}

both_backends! {
    async fn a_function_over_any_guard_works_with_each(backend: Backend) {
        let server = backend.start().await;
        let client = || connect(&server);

        let of = client().await;
        let lock = Mutex::new(&of, "/mutex-lock").unwrap();
        let acquire = async || lock.acquire().await.unwrap();
        lives(&of, "mutex", true, acquire().await, acquire).await;

        let of = client().await;
        let lock = RwLock::new(&of, "/rw-lock").unwrap();
        let write = async || lock.write().await.unwrap();
        lives(&of, "write", true, write().await, write).await;

        let of = client().await;
        let lock = RwLock::new(&of, "/rw-lock").unwrap();
        let read = async || lock.read().await.unwrap();
        lives(&of, "read", false, read().await, read).await;

        let of = client().await;
        let semaphore = Semaphore::new(&of, "/semaphore", 1).unwrap();
        let acquire = async || semaphore.acquire().await.unwrap();
        lives(&of, "permit", false, acquire().await, acquire).await;

        let of = client().await;
        let locks = ["/one", "/two"].map(|path| Mutex::new(&of, path).unwrap());
        let multi = MultiLock::new(&locks).unwrap();
        let acquire = async || multi.acquire().await.unwrap();
        lives(&of, "multi", false, acquire().await, acquire).await;

        let of = client().await;
        let election = Election::new(&of, "/election").unwrap();
        let campaign = async || election.campaign().await.unwrap();
        lives(&of, "leadership", true, campaign().await, campaign).await;

        let of = client().await;
        let queue = Queue::<String>::new(&of, "/queue").unwrap();
        queue.put(&"item".to_owned()).await.unwrap();
        let take = async || queue.take().await.unwrap();
        lives(&of, "delivery", true, take().await, take).await;
    }
}
