//! Re-entry is explicit: by owner, by scope, by guard.

use crate::order::until_waiting;
use crate::{both_backends, builder, connect};
use docent::locks::{AcquireError, Owner};
use docent::{ErrorKind, LostReason, Mutex, RwLock};
use docent_battery::Backend;
use docent_proto::OpCode;
use docent_tests::{PATIENCE, soon};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

async fn outer(mutex: &Mutex) -> docent::Fence {
    let guard = mutex.acquire().await.unwrap();
    let inner = inner(mutex).await;
    assert_eq!(guard.fence(), inner);
    inner
}

async fn inner(mutex: &Mutex) -> docent::Fence {
    mutex.acquire().await.unwrap().fence()
}

both_backends! {
    async fn nested_acquires_in_a_scope_re_enter_without_any_request(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        soon(Owner::scope(outer(&mutex))).await;
        let creates = server.front().trace();
        let creates = creates.iter().filter(|frame| {
            frame.is_request(OpCode::Create2) && frame.path.as_ref().is_some_and(|path| path.contains("lock-"))
        });
        // The first create failed because the parent was missing.
        assert_eq!(creates.count(), 2);
    }

    async fn another_handle_of_the_same_lock_re_enters_for_the_same_owner(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let owner = Owner::new();
        let first = soon(Mutex::new(&client, "/lock").unwrap().acquire_as(&owner)).await.unwrap();
        let second = soon(Mutex::new(&client, "/lock").unwrap().acquire_as(&owner)).await.unwrap();
        assert_eq!(first.fence(), second.fence());
    }

    async fn the_node_is_deleted_with_the_last_guard(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let first = soon(mutex.acquire()).await.unwrap();
        let second = first.reenter().unwrap();
        soon(first.release()).await.unwrap();
        assert_eq!(soon(mutex.participants()).await.unwrap().len(), 1);
        assert!(second.is_held());
        soon(second.release()).await.unwrap();
        assert_eq!(soon(mutex.participants()).await.unwrap(), []);
    }

    async fn branches_of_one_join_exclude_each_other_without_a_scope(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let busy = AtomicBool::new(false);
        let branch = || async {
            for _ in 0..20 {
                let guard = mutex.acquire().await.unwrap();
                assert!(!busy.swap(true, Ordering::SeqCst), "both branches hold the lock");
                docent_tests::pause().await;
                busy.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        };
        soon(async { tokio::join!(branch(), branch()) }).await;
    }

    async fn first_acquires_of_one_owner_that_race_share_one_ticket(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let holder = soon(mutex.acquire()).await.unwrap();
        let owner = Owner::new();
        let first = tokio::spawn(mutex.acquire_as(&owner));
        let second = tokio::spawn(mutex.acquire_as(&owner));
        until_waiting(&mutex, 2).await;
        // The cancelled acquire leaves the place in the line to the other one.
        first.abort();
        assert!(soon(first).await.unwrap_err().is_cancelled());
        let place = soon(mutex.participants()).await.unwrap()[1].clone();
        soon(holder.release()).await.unwrap();
        let guard = soon(second).await.unwrap().unwrap();
        assert_eq!(guard.fence(), place.fence);
    }

    async fn an_acquire_uses_the_owner_that_is_current_at_the_call(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let acquire = Owner::scope(async {
            let guard = mutex.acquire().await.unwrap();
            (guard, mutex.acquire())
        });
        let (guard, acquire) = soon(acquire).await;
        // The future re-enters even if it is polled outside of the scope.
        assert_eq!(soon(acquire).await.unwrap().fence(), guard.fence());
    }

    async fn an_acquire_that_joined_a_try_of_its_owner_waits_out_an_outage(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let settings = builder(&server, proxy.connect_string()).operation_timeout(Duration::from_secs(1));
        let client = settings.session_timeout(PATIENCE * 2).connect().await.unwrap();
        let (mutex, lock, owner) = (
            Mutex::new(&client, "/lock").unwrap(),
            RwLock::new(&client, "/rw").unwrap(),
            Owner::new(),
        );
        proxy.blackhole();
        let (tried, trying) = (mutex.clone(), owner.clone());
        let tried = tokio::spawn(trying.within(async move { tried.try_acquire().await }));
        let (writer, writing) = (lock.clone(), owner.clone());
        let writer = tokio::spawn(writing.within(async move { writer.try_write().await }));
        docent_tests::pause().await;
        let joined = tokio::spawn(mutex.acquire_as(&owner));
        // If the write attempt succeeds, the owner reads beside its own write.
        let reader = tokio::spawn(lock.read_as(&owner));
        for error in [soon(tried).await.unwrap().map(drop), soon(writer).await.unwrap().map(drop)] {
            assert!(matches!(&error, Err(AcquireError::Core(error)) if error.kind() == ErrorKind::Timeout), "{error:?}");
        }
        proxy.heal().await.unwrap();
        proxy.reset().await;
        drop((soon(joined).await.unwrap().unwrap(), soon(reader).await.unwrap().unwrap()));
    }

    async fn re_entering_a_lost_hold_fails(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let guard = soon(mutex.acquire_as(&owner)).await.unwrap();
        client.delete(&guard.path(), None).await.unwrap();
        assert_eq!(soon(guard.lost()).await, LostReason::NodeDeleted);
        assert_eq!(guard.reenter().unwrap_err().reason, LostReason::NodeDeleted);
        assert!(matches!(soon(mutex.acquire_as(&owner)).await, Err(AcquireError::Lost(_))));
        // After the lost hold is released, the owner can acquire again.
        assert!(soon(guard.release()).await.is_err());
        let _ = soon(mutex.acquire_as(&owner)).await.unwrap();
    }
}
