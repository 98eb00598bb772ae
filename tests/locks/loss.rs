//! A holder knows that its lock is lost before anybody else can hold it, and nothing un-loses.

use crate::{builder, connect};
use docent::{Client, ConnectionState, LostReason, Mutex, MutexGuard};
use docent_testkit::{Backend, Direction, Flow, Proxy, TestServer, both_backends};
use docent_tests::{SHORT_SESSION, soon};
use std::sync::Arc;

/// A holder whose link can be broken, and its proxy.
async fn holder(server: &TestServer) -> (Client, Proxy, Mutex, MutexGuard) {
    let proxy = server.proxy().await;
    let client =
        builder(server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
    let mutex = Mutex::new(&client, "/lock").unwrap();
    let guard = soon(mutex.acquire()).await.unwrap();
    (client, proxy, mutex, guard)
}

/// Cuts the holder off by `cut`, and checks that it knows of its loss before the next one holds the lock.
async fn loss_comes_before_the_next_grant(server: TestServer, cut: impl AsyncFnOnce(&Proxy)) {
    let (client, proxy, mutex, guard) = holder(&server).await;
    let guard = Arc::new(guard);
    let next = connect(&server).await;
    let waiter = tokio::spawn({
        let (acquire, before) = (Mutex::new(&next, "/lock").unwrap().acquire(), Arc::clone(&guard));
        async move {
            let guard = acquire.await.unwrap();
            (guard, before.is_held())
        }
    });
    crate::order::until_waiting(&Mutex::new(&next, "/lock").unwrap(), 2).await;
    let fence = guard.fence();
    cut(&proxy).await;
    assert_eq!(soon(guard.lost()).await, LostReason::LeaseExpired);
    assert!(!guard.is_held());
    // Whichever task a busy machine runs first, the clock has told the holder by then.
    let (granted, is_held) = soon(waiter).await.unwrap();
    assert!(!is_held, "it says that it holds when the next one does");
    assert!(granted.fence() > fence);

    // Nothing un-loses, also not when the link is back.
    proxy.heal().await.unwrap();
    proxy.reset().await;
    let mut state = client.state();
    assert_eq!(soon(state.reached(ConnectionState::Connected)).await, ConnectionState::Connected);
    assert!(!guard.is_held());
    assert!(guard.reenter().is_err());
    assert!(guard.token().is_cancelled());
    drop(granted);
    // Later acquires work.
    drop(guard);
    let _ = soon(mutex.acquire()).await.unwrap();
}

both_backends! {
    async fn a_link_cut_for_less_than_the_lease_loses_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy, _mutex, guard) = holder(&server).await;
        let mut state = client.state();
        let before = state.current();
        proxy.cut().await;
        assert_eq!(soon(state.changed()).await, ConnectionState::Suspended);
        proxy.heal().await.unwrap();
        let after = soon(state.reached(ConnectionState::Connected)).await;
        assert_eq!((after.epoch, after.suspensions), (before.epoch, before.suspensions + 1));
        assert!(guard.is_held());
        soon(guard.verify()).await.unwrap();
        soon(guard.release()).await.unwrap();
    }

    async fn a_refused_holder_knows_of_its_loss_before_the_next_grant(backend: Backend) {
        loss_comes_before_the_next_grant(backend.start().await, async |proxy| proxy.cut().await).await;
    }

    /// The client tries again and again to end the session it gave up. Each try reaches the server, and must not keep the
    /// session alive.
    async fn the_node_of_a_holder_that_gets_no_replies_is_gone_once_its_guard_is_dropped(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy, _mutex, guard) = holder(&server).await;
        let other = connect(&server).await;
        let (path, mut state) = (guard.path(), client.state());
        proxy.set_flow(Direction::ToClient, Flow::Swallow);
        soon(state.reached(ConnectionState::Lost)).await;
        assert!(other.exists(&path).await.unwrap().is_some(), "its work may not have stopped yet");
        drop(guard);
        soon(async { while other.exists(&path).await.unwrap().is_some() {} }).await;
    }

    async fn a_black_holed_holder_knows_of_its_loss_before_the_next_grant(backend: Backend) {
        loss_comes_before_the_next_grant(backend.start().await, async |proxy| proxy.blackhole()).await;
    }

    async fn a_holder_that_gets_no_replies_knows_of_its_loss_before_the_next_grant(backend: Backend) {
        loss_comes_before_the_next_grant(backend.start().await, async |proxy| {
            proxy.set_flow(Direction::ToClient, Flow::Swallow);
        })
        .await;
    }

    async fn a_holder_whose_session_the_server_ended_is_lost_and_a_new_epoch_follows(backend: Backend) {
        let server = backend.start().await;
        let (client, _proxy, mutex, guard) = holder(&server).await;
        let session = client.session_id().unwrap();
        let mut state = client.state();
        let epoch = state.current().epoch;
        server.expire(session).await.unwrap();
        soon(guard.lost()).await;
        assert!(!guard.is_held());
        let connected = state.wait_for(|connection| {
            *connection == ConnectionState::Connected && connection.epoch > epoch
        });
        let connection = soon(connected).await;
        assert_eq!(connection.epoch, epoch + 1);
        assert_ne!(client.session_id(), Some(session));
        assert!(!guard.is_held(), "nothing un-loses");
        let again = soon(mutex.acquire()).await.unwrap();
        assert!(again.fence() > guard.fence());
    }

    async fn work_under_a_guard_stops_when_it_is_lost(backend: Backend) {
        let server = backend.start().await;
        let (_client, proxy, _mutex, guard) = holder(&server).await;
        assert_eq!(soon(guard.run(async { 7 })).await, Ok(7));
        proxy.blackhole();
        let lost = soon(guard.run(std::future::pending::<()>())).await.unwrap_err();
        assert_eq!(lost.reason, LostReason::LeaseExpired);
        // What is tried after that is not even polled.
        assert!(soon(guard.run(async { unreachable!("the lock is lost") })).await.is_err());
    }

    async fn a_waiter_whose_session_ends_takes_a_new_ticket(backend: Backend) {
        let server = backend.start().await;
        let (first, second) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&first, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&second, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        server.expire(second.session_id().unwrap()).await.unwrap();
        soon(held.release()).await.unwrap();
        let _ = soon(waiting).await.unwrap().unwrap();
    }

    async fn a_waiter_whose_node_is_deleted_takes_a_new_ticket(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let held = soon(mutex.acquire()).await.unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        let ticket = soon(mutex.participants()).await.unwrap()[1].clone();
        client.delete(&format!("/lock/{}", ticket.name), None).await.unwrap();
        soon(held.release()).await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.fence() > ticket.fence);
    }
}
