//! Others in the line: foreign children, Curator's contenders, revocation, numbers near their end.

use docent::{CreateMode, ErrorKind, Mutex};
use docent_testkit::{Backend, both_backends};
use docent_tests::{connect, soon};

both_backends! {
    async fn foreign_children_are_nobody_and_curators_contenders_are_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for name in ["foo", "lock", "lock-", "lock-abc", "lock-12345678901", "_c_-lock-000000000", "-0000000001"] {
            other.create(&format!("/lock/{name}"), "", CreateMode::Persistent).await.unwrap();
        }
        let mutex = Mutex::new(&client, "/lock").unwrap();
        soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
        // As Curator and go-zookeeper write them.
        for prefix in ["_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-", "_c_8eb6557ec51a32d1e0cb91e4d5e9a5c5-lock-"] {
            let path = format!("/lock/{prefix}");
            let neighbour = other.create(&path, "", CreateMode::EphemeralSequential).await.unwrap();
            let waiting = tokio::spawn(mutex.acquire());
            crate::order::until_waiting(&mutex, 2).await;
            other.delete(&neighbour.path, None).await.unwrap();
            soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
        }
    }

    async fn a_holder_is_asked_for_the_lock_and_may_give_it_up(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let theirs = Mutex::new(&other, "/lock").unwrap();
        let participant = soon(theirs.participants()).await.unwrap()[0].clone();
        soon(theirs.revoke(&participant)).await.unwrap();
        assert_eq!(other.get(&guard.path()).await.unwrap().data, "__REVOKE__");
        soon(guard.revoked()).await;
        assert!(guard.is_held(), "it is asked, not forced");
        soon(guard.release()).await.unwrap();
        assert_eq!(soon(theirs.revoke(&participant)).await.unwrap_err().kind(), ErrorKind::NoNode);
    }

    async fn a_waiter_that_is_revoked_learns_of_it_once_it_holds_the_lock(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let held = soon(mutex.acquire()).await.unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        let waiter = soon(mutex.participants()).await.unwrap()[1].clone();
        soon(mutex.revoke(&waiter)).await.unwrap();
        soon(held.release()).await.unwrap();
        soon(soon(waiting).await.unwrap().unwrap().revoked()).await;
    }

    async fn contenders_near_the_end_of_the_counter_are_ordered_by_creation(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        // Written by hand, as a neighbour whose number wrapped would have it: created earlier, numbered higher or negative.
        let earlier = "/lock/_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-2147483647";
        other.create(earlier, "", CreateMode::Ephemeral).await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        let later = "/lock/_c_0a794062-0b31-421c-9cfe-0699f14437da-lock--2147483648";
        other.create(later, "", CreateMode::Ephemeral).await.unwrap();
        assert!(!waiting.is_finished());
        other.delete(earlier, None).await.unwrap();
        // The later one is not waited for, although its number is lower.
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.is_held());
    }

    async fn an_empty_line_can_be_reset_and_fences_go_on_increasing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let fence = guard.fence();
        assert_eq!(soon(mutex.reset()).await.unwrap_err().kind(), ErrorKind::NotEmpty);
        soon(guard.release()).await.unwrap();
        soon(mutex.reset()).await.unwrap();
        soon(mutex.reset()).await.unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        assert!(guard.path().ends_with("-lock-0000000000"));
        assert!(guard.fence() > fence);
    }
}
