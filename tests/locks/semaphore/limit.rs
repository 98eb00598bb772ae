//! A limit that is raised and lowered, and bad input.

use super::until_participants;
use crate::connect;
use docent::locks::{AcquireError, SharedLimit};
use docent::{CreateMode, ErrorKind, Semaphore};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;

both_backends! {
    async fn raising_the_limit_wakes_waiters(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let limit = SharedLimit::new(&client, "/limit", 1).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        let first = soon(semaphore.acquire()).await.unwrap();
        let waiters: Vec<_> = (0..2).map(|_| tokio::spawn(semaphore.acquire())).collect();
        until_participants(&semaphore, 3).await;
        soon(SharedLimit::new(&other, "/limit", 9).unwrap().set(3)).await.unwrap();
        for waiter in waiters {
            assert!(soon(waiter).await.unwrap().unwrap().is_held());
        }
        assert!(first.is_held());
        assert_eq!(soon(limit.get()).await.unwrap(), 3);
    }

    async fn lowering_the_limit_revokes_no_permit_and_admits_no_waiter_before_enough_are_released(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let limit = SharedLimit::new(&client, "/limit", 3).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        let (one, two) = (soon(semaphore.acquire()).await.unwrap(), soon(semaphore.acquire_many(2)).await.unwrap());
        soon(limit.set(1)).await.unwrap();
        let waiter = tokio::spawn(semaphore.acquire());
        until_participants(&semaphore, 4).await;
        soon(two.release()).await.unwrap();
        until_participants(&semaphore, 2).await;
        assert!(matches!(soon(semaphore.try_acquire()).await, Err(AcquireError::Busy(_))));
        assert!(one.is_held() && !waiter.is_finished());
        soon(one.release()).await.unwrap();
        let _ = soon(waiter).await.unwrap().unwrap();
        // With a limit of 0, every acquire waits until the limit is raised.
        soon(limit.set(0)).await.unwrap();
        let waiter = tokio::spawn(semaphore.acquire());
        until_participants(&semaphore, 1).await;
        soon(limit.set(1)).await.unwrap();
        let _ = soon(waiter).await.unwrap().unwrap();
    }

    async fn the_limit_is_in_the_format_of_curators_shared_count(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let limit = SharedLimit::new(&client, "/limit", 7).unwrap();
        assert_eq!(soon(limit.get()).await.unwrap(), 7);
        soon(limit.set(258)).await.unwrap();
        assert_eq!(client.get("/limit").await.unwrap().data.as_ref(), [0, 0, 1, 2]);
        soon(limit.set(259)).await.unwrap();
        for (data, value) in [(vec![0, 0, 1, 4], 260), (vec![0, 0, 0, 5, 9, 9], 5), (vec![255; 4], 0)] {
            client.set("/limit", data, None).await.unwrap();
            assert_eq!(soon(limit.get()).await.unwrap(), value);
        }
        client.delete("/limit", None).await.unwrap();
        assert_eq!(soon(limit.get()).await.unwrap(), 7);
    }

    async fn a_permit_released_after_the_limit_was_lowered_admits_no_waiter(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let limit = SharedLimit::new(&client, "/limit", 1).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        let lease = |n: usize| format!("/semaphore/leases/_c_9a794062-0b31-421c-9cfe-0699f14437d{n}-lease-");
        // A waiter may learn of either change first.
        for _ in 0..10 {
            soon(limit.set(2)).await.unwrap();
            let mut out = Vec::new();
            for n in 0..2 {
                out.push(other.create(&lease(n), "", CreateMode::EphemeralSequential).await.unwrap().path);
            }
            let waiter = tokio::spawn(semaphore.acquire());
            until_participants(&semaphore, 3).await;
            let both = other.transaction().set("/limit", 1u32.to_be_bytes().to_vec(), None).delete(&out[0], None);
            soon(both.commit()).await.unwrap();
            until_participants(&semaphore, 2).await;
            for _ in 0..5 {
                // The sync follows everything that the waiter sends.
                soon(client.sync("/")).await.unwrap();
            }
            assert!(!waiter.is_finished(), "two permits are in use, but the limit is 1");
            other.delete(&out[1], None).await.unwrap();
            soon(soon(waiter).await.unwrap().unwrap().release()).await.unwrap();
        }
    }

    async fn a_limit_that_is_not_a_number_is_an_error_that_names_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/limit", "3", CreateMode::Persistent).await.unwrap();
        let limit = SharedLimit::new(&client, "/limit", 7).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        let error = soon(semaphore.acquire()).await.unwrap_err();
        assert!(error.to_string().contains("1 bytes at \"/limit\" must begin with a number of 4 bytes"), "{error}");
        soon(limit.set(1)).await.unwrap();
        let _ = soon(semaphore.acquire()).await.unwrap();
    }

    async fn bad_numbers_of_permits_are_refused_with_value_and_rule(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let refused = |error: docent::Error, text: &str| {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(text), "{error}");
        };
        refused(Semaphore::new(&client, "/semaphore", 0).unwrap_err(), "permits 0 must be at least 1");
        refused(Semaphore::new(&client, "semaphore", 1).unwrap_err(), "\"semaphore\" must start with '/'");
        refused(Semaphore::new(&client, "/", 1).unwrap_err(), "must not be the root");
        refused(SharedLimit::new(&client, "/limit", 1 << 31).unwrap_err(), "permits 2147483648 must be at most 2147483647");
        refused(SharedLimit::new(&client, "limit", 1).unwrap_err(), "must start with '/'");
        let semaphore = Semaphore::new(&client, "/semaphore", 4).unwrap();
        for (permits, text) in [(0, "permits 0 must be at least 1"), (5, "permits 5 must be at most the semaphore's 4")] {
            let Err(AcquireError::Core(error)) = soon(semaphore.acquire_many(permits)).await else { panic!("accepted") };
            refused(error, text);
            let Err(AcquireError::Core(error)) = soon(semaphore.try_acquire_many(permits)).await else { panic!("accepted") };
            refused(error, text);
        }
        until_participants(&semaphore, 0).await;
    }
}
