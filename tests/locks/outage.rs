//! Server outages that last longer than an operation timeout.

use docent::guard::Guard;
use docent::locks::{AcquireError, Owner, SharedLimit};
use docent::{Client, ConnectionState, ErrorKind, MultiLock, Mutex, Released, RwLock, Semaphore};
use docent_battery::{Backend, Rule, TestServer};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, builder, soon};
use futures_util::future::{BoxFuture, FutureExt, TryFutureExt};
use std::time::Duration;

/// Operation timeout, shorter than each outage.
const OPERATION: Duration = Duration::from_millis(200);

async fn impatient(server: &TestServer, connect_string: String) -> Client {
    let client = builder(server, connect_string).connect().await.unwrap();
    client.with_operation_timeout(OPERATION)
}

/// Waits until two operations that start now have failed because no server was reachable.
async fn too_long(client: &Client) {
    for _ in 0..2 {
        assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::Timeout);
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_without_a_ticket_outlasts_an_outage_longer_than_the_operation_timeout() {
    let server = Backend::Memory.start_own().await;
    let client = impatient(&server, server.connect_string()).await;
    let mutex = |path| Mutex::new(&client, path).unwrap();
    let lock = RwLock::new(&client, "/rw").unwrap();
    let limit = SharedLimit::new(&client, "/limit", 2).unwrap();
    let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
    let multi = MultiLock::new(["/a", "/b"].map(mutex)).unwrap();
    server.stop().await;
    let all = async {
        let single = mutex("/mutex");
        let (read, write) = (lock.read(), RwLock::new(&client, "/other").unwrap().write_timeout(PATIENCE));
        tokio::join!(
            single.acquire(),
            mutex("/patient").acquire_timeout(PATIENCE),
            read,
            write,
            semaphore.acquire_many(2),
            multi.acquire()
        )
    };
    let outage = async {
        too_long(&client).await;
        server.start_again().await;
    };
    let ((single, patient, read, write, permit, both), ()) = soon(async { tokio::join!(all, outage) }).await;
    single.unwrap().release().await.unwrap();
    patient.unwrap().release().await.unwrap();
    read.unwrap().release().await.unwrap();
    write.unwrap().release().await.unwrap();
    permit.unwrap().release().await.unwrap();
    both.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_acquire_with_its_own_timeout_ends_by_that_timeout_in_an_outage() {
    let server = Backend::Memory.start_own().await;
    let client = builder(&server, server.connect_string()).connect().await.unwrap();
    let lock = RwLock::new(&client, "/rw").unwrap();
    let semaphore = Semaphore::new(&client, "/semaphore", 2).unwrap();
    server.stop().await;
    // The operation timeout equals the test's patience.
    let results = soon(async {
        tokio::join!(
            async { Mutex::new(&client, "/mutex").unwrap().acquire_timeout(OPERATION).await.map(drop) },
            async { lock.write_timeout(OPERATION).await.map(drop) },
            async { semaphore.acquire_timeout(OPERATION).await.map(drop) },
        )
    })
    .await;
    for result in [results.0, results.1, results.2] {
        assert!(matches!(result, Err(AcquireError::TimedOut(_))), "{result:?}");
    }
}

async fn is_pending(guard: impl Guard) {
    assert_eq!(soon(guard.release()).await.unwrap(), Released::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_an_outage_delays_is_pending_and_its_node_is_deleted_later() {
    let server = Backend::Memory.start_own().await;
    let client = impatient(&server, server.connect_string()).await;
    let (mutex, owner) = (Mutex::new(&client, "/mutex").unwrap(), Owner::new());
    let lock = RwLock::new(&client, "/rw").unwrap();
    let semaphore = Semaphore::new(&client, "/semaphore", 2).unwrap();
    let multi = MultiLock::new(["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap())).unwrap();
    let first = mutex.acquire_as(&owner).await.unwrap();
    let (fence, path) = (first.fence(), first.path());
    let write = lock.write().await.unwrap();
    let permits = semaphore.acquire_many(2).await.unwrap();
    let both = multi.acquire().await.unwrap();
    server.stop().await;
    tokio::join!(is_pending(first), is_pending(write), is_pending(permits), is_pending(both));
    // The same owner does not hold the lock any more: its next acquire waits for the old node.
    let mut again = tokio::spawn(mutex.acquire_as(&owner));
    assert!(tokio::time::timeout(OPERATION, &mut again).await.is_err());
    server.start_again().await;
    let again = soon(again).await.unwrap().unwrap();
    assert!(again.fence() > fence && again.path() != path);
    assert_eq!(client.exists(&path).await.unwrap(), None);
    assert_eq!(soon(again.release()).await.unwrap(), Released::Done);
    for released in [
        soon(lock.write()).await.unwrap().release().await,
        soon(semaphore.acquire_many(2)).await.unwrap().release().await,
        soon(multi.acquire()).await.unwrap().release().await,
    ] {
        assert_eq!(released.unwrap(), Released::Done);
    }
}

/// Timeout of a try, long enough for a busy machine to reach the listing.
const TRY: Duration = Duration::from_secs(1);

/// A single attempt to acquire.
type Try = fn(&Client) -> BoxFuture<'static, Result<(), AcquireError>>;

/// The servers stop after the ticket is created and before the listing that would show its place.
#[tokio::test(start_paused = true)]
async fn a_try_that_has_a_ticket_already_ends_by_the_operation_timeout_in_an_outage() {
    let server = Backend::Memory.start_own().await;
    let tries: [(Try, usize); 4] = [
        (|client| Mutex::new(client, "/mutex").unwrap().try_acquire().map_ok(drop).boxed(), 2),
        (|client| RwLock::new(client, "/rw").unwrap().try_read().map_ok(drop).boxed(), 2),
        // A semaphore first checks for permits.
        (|client| Semaphore::new(client, "/semaphore", 2).unwrap().try_acquire().map_ok(drop).boxed(), 3),
        (
            |client| {
                let both = ["/a", "/b"].map(|path| Mutex::new(client, path).unwrap());
                MultiLock::new(both).unwrap().try_acquire().map_ok(drop).boxed()
            },
            2,
        ),
    ];
    for (number, (tried, listing)) in tries.into_iter().enumerate() {
        let proxy = server.proxy().await;
        let patient = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let client = patient.with_operation_timeout(TRY);
        // The first attempt creates the parents.
        soon(tried(&patient)).await.unwrap();
        let cut = proxy.add(Rule::on(OpCode::GetChildren2).nth(listing).cut_after());
        let error = soon(tried(&client)).await.unwrap_err();
        assert!(
            matches!(&error, AcquireError::Core(error) if error.kind() == ErrorKind::Timeout),
            "{number}: {error}"
        );
        assert!(cut.has_fired(), "{number}");
        assert_eq!(
            client.state().current(),
            ConnectionState::Suspended,
            "{number}: lost only with its session"
        );
    }
}
