//! Tasks of one owner that use both sides of a lock at the same time.

use super::until_in_line;
use crate::{builder, connect};
use docent::locks::{AcquireError, Owner, ReadGuard};
use docent::{Error, Fence, RwLock};
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use tokio::task::JoinHandle;

/// A writer that is being downgraded. Its request is held until the proxy heals.
struct StepDown {
    proxy: Proxy,
    lock: RwLock,
    owner: Owner,
    fence: Fence,
    stepping: JoinHandle<Result<ReadGuard, Error>>,
}

impl StepDown {
    async fn begin(server: &TestServer) -> Self {
        let proxy = server.proxy().await;
        let client = builder(server, proxy.connect_string()).connect().await.unwrap();
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let written = soon(lock.write_as(&owner)).await.unwrap();
        let fence = written.fence();
        let held = proxy.add(Rule::on(OpCode::Multi).path(|path| path.contains("__READ__")).hold());
        let stepping = tokio::spawn(written.downgrade());
        soon(held.fired()).await;
        Self { proxy, lock, owner, fence, stepping }
    }
}

both_backends! {
    async fn an_owner_that_waits_to_read_and_wants_to_write_fails_immediately(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let foreign = soon(RwLock::new(&other, "/lock").unwrap().write()).await.unwrap();
        let owner = Owner::new();
        let reading = tokio::spawn(lock.read_as(&owner));
        until_in_line(&lock, 2).await;
        assert!(matches!(soon(lock.write_as(&owner)).await, Err(AcquireError::WouldDeadlock)));
        let tried = soon(owner.clone().within(async { lock.try_write().await })).await;
        assert!(matches!(tried, Err(AcquireError::WouldDeadlock)));
        assert_eq!(soon(lock.participants()).await.unwrap().len(), 2, "a ticket was taken");
        // After its read was cancelled, the owner may write.
        reading.abort();
        assert!(soon(reading).await.unwrap_err().is_cancelled());
        soon(foreign.release()).await.unwrap();
        let _ = soon(lock.write_as(&owner)).await.unwrap();
    }

    async fn an_owner_that_waits_to_write_reads_with_the_write_lock(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let foreign = soon(RwLock::new(&other, "/lock").unwrap().read()).await.unwrap();
        let owner = Owner::new();
        let writing = tokio::spawn(lock.write_as(&owner));
        until_in_line(&lock, 2).await;
        let tried = soon(owner.clone().within(async { lock.try_read().await })).await;
        assert!(matches!(tried, Err(AcquireError::Busy(_))));
        let both = async { tokio::join!(writing, lock.read_as(&owner)) };
        let ((written, read), released) = soon(async { tokio::join!(both, foreign.release()) }).await;
        released.unwrap();
        let (written, read) = (written.unwrap().unwrap(), read.unwrap());
        assert_eq!(read.fence(), Some(written.fence()));
        soon(written.release()).await.unwrap();
        assert!(read.is_held());
    }

    async fn both_sides_requested_together_by_one_owner_never_wait_for_each_other(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        for _ in 0..20 {
            let owner = Owner::new();
            let (read, write) = (tokio::spawn(lock.read_as(&owner)), tokio::spawn(lock.write_as(&owner)));
            let (read, write) = soon(async { tokio::join!(read, write) }).await;
            let read = read.unwrap().unwrap();
            match write.unwrap() {
                Ok(written) => assert_eq!(Some(written.fence()), read.fence()),
                Err(error) => assert!(matches!(error, AcquireError::WouldDeadlock), "{error:?}"),
            }
        }
    }

    async fn an_owner_that_is_stepping_down_counts_as_a_reader(backend: Backend) {
        let server = backend.start().await;
        let StepDown { proxy, lock, owner, fence, stepping } = StepDown::begin(&server).await;
        assert!(matches!(soon(lock.write_as(&owner)).await, Err(AcquireError::WouldDeadlock)));
        let reading = tokio::spawn(lock.read_as(&owner));
        docent_tests::pause().await;
        proxy.heal().await.unwrap();
        let down = soon(stepping).await.unwrap().unwrap();
        let read = soon(reading).await.unwrap().unwrap();
        assert_eq!(read.path(), down.path());
        assert_eq!(read.fence(), Some(fence), "the reader must have the writer's place");
        until_in_line(&lock, 1).await;
    }

    async fn a_call_that_joined_a_downgrade_reads_although_the_downgrade_is_cancelled(backend: Backend) {
        let server = backend.start().await;
        let StepDown { proxy, lock, owner, fence, stepping } = StepDown::begin(&server).await;
        let mut reading = Box::pin(lock.read_as(&owner));
        assert!(futures_util::poll!(reading.as_mut()).is_pending());
        stepping.abort();
        assert!(soon(stepping).await.unwrap_err().is_cancelled());
        proxy.heal().await.unwrap();
        let read = soon(reading).await.unwrap();
        assert_eq!(read.fence(), Some(fence));
        assert!(read.is_held());
        drop(read);
        until_in_line(&lock, 0).await;
    }
}
