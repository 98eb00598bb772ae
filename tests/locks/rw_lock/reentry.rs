//! A holder may re-enter; a reader must not wait to write.

use super::until_in_line;
use crate::connect;
use docent::locks::{AcquireError, Owner};
use docent::{LostReason, RwLock};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;

both_backends! {
    async fn an_owner_re_enters_write_in_write_read_in_write_and_read_in_read(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let written = soon(lock.write_as(&owner)).await.unwrap();
        let again = soon(lock.write_as(&owner)).await.unwrap();
        let nested = soon(lock.read_as(&owner)).await.unwrap();
        assert_eq!(again.fence(), written.fence());
        assert_eq!(nested.fence(), Some(written.fence()));
        assert_eq!(soon(lock.participants()).await.unwrap().len(), 2, "expected two nodes, as in Curator");
        soon(written.release()).await.unwrap();
        assert!(matches!(soon(lock.try_read()).await, Err(AcquireError::Busy(_))), "the writer still holds");
        soon(again.release()).await.unwrap();
        // The reader keeps the writer's place until its release, and admits other readers.
        assert!(nested.is_held());
        assert!(matches!(soon(lock.try_write()).await, Err(AcquireError::Busy(_))));
        drop(soon(lock.try_read()).await.unwrap());
        soon(nested.release()).await.unwrap();

        let read = soon(lock.read_as(&owner)).await.unwrap();
        let again = soon(lock.read_as(&owner)).await.unwrap();
        assert_eq!(read.path(), again.path());
        assert_eq!(again.reenter().unwrap().path(), read.path());
        assert_eq!(soon(lock.participants()).await.unwrap().len(), 1);
    }

    async fn a_scope_re_enters_without_passing_an_owner_along(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        soon(Owner::scope(async {
            let written = lock.write().await.unwrap();
            let nested = lock.read().await.unwrap();
            assert_eq!(nested.fence(), Some(written.fence()));
            assert_eq!(lock.try_read().await.unwrap().path(), nested.path());
            assert_eq!(lock.try_write().await.unwrap().fence(), written.fence());
        })).await;
    }

    async fn an_owner_that_reads_and_wants_to_write_fails_immediately_without_a_request(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let read = soon(lock.read_as(&owner)).await.unwrap();
        let error = soon(lock.write_as(&owner)).await.unwrap_err();
        assert!(matches!(error, AcquireError::WouldDeadlock) && !error.is_retryable(), "{error:?}");
        assert!(error.to_string().contains("would wait for itself"));
        let tried = soon(owner.clone().within(async { lock.try_write().await })).await;
        assert!(matches!(tried, Err(AcquireError::WouldDeadlock)));
        assert_eq!(soon(lock.participants()).await.unwrap().len(), 1, "a ticket was taken");
        // After it has stopped reading, the owner may write.
        soon(read.release()).await.unwrap();
        let _ = soon(lock.write_as(&owner)).await.unwrap();
    }

    async fn a_writer_that_stepped_down_reads_for_its_owner(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let read = soon(soon(lock.write_as(&owner)).await.unwrap().downgrade()).await.unwrap();
        let again = soon(lock.read_as(&owner)).await.unwrap();
        assert_eq!(again.path(), read.path());
        assert!(read.fence().is_some());
        assert_eq!(again.fence(), read.fence(), "the reader must have the writer's place in any case");
        assert!(matches!(soon(lock.write_as(&owner)).await, Err(AcquireError::WouldDeadlock)));
    }

    async fn another_owner_of_the_same_process_may_not_read_while_one_writes(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write_as(&Owner::new())).await.unwrap();
        let reader = tokio::spawn(lock.read_as(&Owner::new()));
        until_in_line(&lock, 2).await;
        assert!(!reader.is_finished());
        soon(written.release()).await.unwrap();
        let _ = soon(reader).await.unwrap().unwrap();
    }

    async fn an_owner_whose_hold_is_lost_cannot_re_enter_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let written = soon(lock.write_as(&owner)).await.unwrap();
        client.delete(&written.path(), None).await.unwrap();
        assert_eq!(soon(written.lost()).await, LostReason::NodeDeleted);
        assert!(written.reenter().is_err());
        assert!(matches!(soon(lock.write_as(&owner)).await, Err(AcquireError::Lost(_))));
        assert!(matches!(soon(lock.read_as(&owner)).await, Err(AcquireError::Lost(_))));
        assert!(soon(written.release()).await.is_err());
        let read = soon(lock.read_as(&owner)).await.unwrap();
        client.delete(&read.path(), None).await.unwrap();
        soon(read.lost()).await;
        assert!(matches!(soon(lock.write_as(&owner)).await, Err(AcquireError::Lost(_))));
    }
}
