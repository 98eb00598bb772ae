//! Tasks of one process that share tickets.

mod endings;
mod leaving;
mod turns;
mod writes;

use crate::connect;
use docent::locks::{AcquireError, SharedMutex, SharedMutexGuard};
use docent::{Client, Fence, Mutex};
use docent_battery::{Backend, FrameKind, TestServer};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, soon};
use futures_util::poll;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinHandle;

type Waiting = JoinHandle<Result<SharedMutexGuard, AcquireError>>;

/// The mutex at `/lock`, whose tickets are passed on up to `limit` times, however long that takes.
fn shared(client: &Client, limit: u32) -> SharedMutex {
    SharedMutex::builder(client, "/lock").limit(limit).share_for(PATIENCE * 10).build().unwrap()
}

/// Starts tasks that wait one behind the other.
async fn waiters(mutex: &SharedMutex, count: usize) -> Vec<Waiting> {
    let polled = Arc::new(AtomicUsize::new(0));
    let wait = |_| {
        let (acquire, polled) = (mutex.acquire(), Arc::clone(&polled));
        tokio::spawn(async move {
            let mut acquire = Box::pin(acquire);
            let first = poll!(acquire.as_mut());
            polled.fetch_add(1, Ordering::SeqCst);
            assert!(first.is_pending());
            acquire.await
        })
    };
    let waiters = (0..count).map(wait).collect();
    docent_tests::until(async || polled.load(Ordering::SeqCst) == count).await;
    waiters
}

fn requests(server: &TestServer) -> usize {
    let is_request = |op| op != Some(OpCode::Ping);
    let trace = server.front().trace();
    trace.iter().filter(|frame| frame.kind == FrameKind::Request && is_request(frame.op)).count()
}

async fn nodes(client: &Client) -> usize {
    client.children("/lock").await.map_or(0, |children| children.names.len())
}

async fn until_empty(client: &Client) {
    docent_tests::until(async || nodes(client).await == 0).await;
}

#[tokio::test]
async fn a_limit_of_zero_is_refused() {
    let client = Client::builder("127.0.0.1:1").build().unwrap();
    let refused = SharedMutex::builder(&client, "/lock").limit(0).build().unwrap_err();
    assert!(refused.to_string().contains("the limit 0"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_a_turn_has_no_fence_of_64_bits() {
    fn fence_of(guard: &docent::guard::Held) -> Option<Fence> {
        guard.fence()
    }
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let guard = soon(shared(&client, 1).acquire()).await.unwrap();
    assert_eq!(fence_of(&guard), None);
    drop(guard);
    assert!(fence_of(&soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap()).is_some());
}
