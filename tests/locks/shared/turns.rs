//! Turns of tasks that share one ticket.

use super::{Waiting, nodes, requests, shared, until_empty, waiters};
use crate::connect;
use crate::order::until_waiting;
use docent::locks::{AcquireError, Owner, SharedMutex, TurnFence};
use docent::{CreateMode, Mutex};
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::{soon, while_progressing};
use futures_util::future::try_join_all;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

both_backends! {
    async fn a_thousand_turns_cost_the_requests_of_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/lock", "", CreateMode::Persistent).await.unwrap();
        let mutex = shared(&client, 1_000);
        let guard = soon(mutex.acquire()).await.unwrap();
        // The holder's watch on its own node.
        server.front().until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::GetData))).await;
        let before = requests(&server);
        let (busy, fences) = (Arc::new(AtomicBool::new(false)), Arc::new(StdMutex::new(vec![guard.fence()])));
        let tasks = (0..20).map(|_| {
            let (mutex, busy, fences) = (mutex.clone(), busy.clone(), fences.clone());
            tokio::spawn(async move {
                for _ in 0..50 {
                    let guard = mutex.acquire().await.unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst), "two hold the lock");
                    fences.lock().unwrap().push(guard.fence());
                    docent_tests::pause().await;
                    assert!(guard.is_held());
                    busy.store(false, Ordering::SeqCst);
                    drop(guard);
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        drop(guard);
        while_progressing(|| fences.lock().unwrap().len(), try_join_all(tasks)).await.unwrap();
        let fences = fences.lock().unwrap().clone();
        assert_eq!(fences.len(), 1_001);
        assert!(fences.is_sorted() && fences.windows(2).all(|pair| pair[0] < pair[1]), "fences do not increase");
        // A heartbeat may be sent meanwhile, and the ticket's delete is sent at the end. A task that arrives
        // after the others have ended may draw another ticket.
        let cost = requests(&server) - before;
        assert!(cost <= 12, "{cost} requests");
    }

    async fn tasks_have_their_turns_in_order_of_arrival(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 100);
        let guard = soon(mutex.acquire()).await.unwrap();
        let served = Arc::new(StdMutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for n in 0..10 {
            waiting.extend(waiters(&mutex, 1).await.into_iter().map(|waiter| {
                let served = served.clone();
                tokio::spawn(async move {
                    let guard = waiter.await.unwrap().unwrap();
                    served.lock().unwrap().push((n, guard.fence().turn()));
                    guard.release().await.unwrap();
                })
            }));
        }
        assert_eq!(nodes(&client).await, 1, "a task that waits for a turn must not have a node");
        guard.release().await.unwrap();
        soon(try_join_all(waiting)).await.unwrap();
        assert_eq!(*served.lock().unwrap(), (0..10).map(|n| (n, n + 1)).collect::<Vec<_>>());
        assert_eq!(nodes(&client).await, 0, "the last release must delete the node");
    }

    async fn after_the_limit_other_clients_in_the_line_have_their_turn(backend: Backend) {
        const LIMIT: u32 = 3;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, LIMIT);
        let guard = soon(mutex.acquire()).await.unwrap();
        let peer = Mutex::new(&other, "/lock").unwrap();
        let peer_waits = tokio::spawn(peer.acquire());
        until_waiting(&peer, 2).await;
        let order = Arc::new(StdMutex::new(vec![guard.fence()]));
        let note = |waiter: Waiting| {
            let order = order.clone();
            tokio::spawn(async move {
                let guard = waiter.await.unwrap().unwrap();
                order.lock().unwrap().push(guard.fence());
                guard.release().await.unwrap();
            })
        };
        let waiting: Vec<_> = waiters(&mutex, 6).await.into_iter().map(note).collect();
        drop(guard);
        let peer = soon(peer_waits).await.unwrap().unwrap();
        assert_eq!(order.lock().unwrap().len(), 1 + LIMIT as usize, "too many turns before the other client");
        order.lock().unwrap().push(peer.fence().into());
        peer.release().await.unwrap();
        soon(try_join_all(waiting)).await.unwrap();
        let order = order.lock().unwrap().clone();
        assert_eq!(order.iter().map(|fence| fence.turn()).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 0, 1, 2]);
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "fences do not increase: {order:?}");
    }

    async fn a_ticket_is_not_passed_on_after_its_maximum_time(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let builder = SharedMutex::builder(&client, "/lock").limit(100);
        let mutex = builder.share_for(Duration::ZERO).build().unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = waiters(&mutex, 2).await;
        let mut place = guard.path();
        drop(guard);
        for waiter in waiting {
            let guard = soon(waiter).await.unwrap().unwrap();
            assert_eq!(guard.fence().turn(), 0);
            assert_ne!(std::mem::replace(&mut place, guard.path()), guard.path());
        }
    }

    async fn handles_with_equal_path_and_settings_share_tickets_and_other_handles_join_the_line(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let guard = soon(shared(&client, 9).acquire()).await.unwrap();
        let same = waiters(&shared(&client.clone(), 9), 1).await.remove(0);
        assert_eq!(nodes(&client).await, 1);
        let other = shared(&client, 8);
        let other = tokio::spawn(other.acquire());
        until_waiting(&Mutex::new(&client, "/lock").unwrap(), 2).await;
        drop(guard);
        let second = soon(same).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1);
        drop(second);
        assert_eq!(soon(other).await.unwrap().unwrap().fence().turn(), 0);
        // Nothing of the turns remains: the next task draws another ticket.
        until_empty(&client).await;
        let _ = soon(shared(&client, 9).acquire()).await.unwrap();
    }

    async fn an_owner_re_enters_its_turn_and_gets_an_error_if_it_would_wait_for_itself(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, owner) = (shared(&client, 9), Owner::new());
        let guard = soon(mutex.acquire_as(&owner)).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let again = soon(mutex.acquire_as(&owner)).await.unwrap();
        let third = again.reenter().unwrap();
        assert!(again.fence() == guard.fence() && third.fence() == guard.fence());
        let plain = Mutex::new(&client, "/lock").unwrap();
        assert!(matches!(soon(plain.acquire_as(&owner)).await, Err(AcquireError::WouldDeadlock)));
        drop(guard);
        again.release().await.unwrap();
        assert!(!next.is_finished() && third.is_held());
        drop(third);
        let guard = soon(next).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 1);
        drop(guard);
        // In the opposite order, both guards share one hold, whose fence only has the first turn.
        let plain = soon(plain.acquire_as(&owner)).await.unwrap();
        let shared = soon(mutex.acquire_as(&owner)).await.unwrap();
        assert_eq!(shared.fence(), TurnFence::from(plain.fence()));
    }

    async fn a_revoked_ticket_is_not_passed_on(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let peer = Mutex::new(&other, "/lock").unwrap();
        soon(peer.revoke(&soon(peer.participants()).await.unwrap()[0])).await.unwrap();
        soon(guard.revoked()).await;
        assert!(guard.is_held());
        let place = guard.path();
        drop(guard);
        let guard = soon(next).await.unwrap().unwrap();
        assert!(guard.path() != place && guard.fence().turn() == 0);
    }

    async fn a_turn_is_passed_on_by_a_panic_and_outside_of_a_runtime(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let mut waiting = waiters(&mutex, 2).await;
        drop(mutex);
        let panics = tokio::spawn(async move {
            let _guard = guard;
            panic!("while it is held");
        });
        assert!(panics.await.is_err());
        let guard = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 1);
        std::thread::spawn(move || drop(guard)).join().unwrap();
        let guard = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 2);
        std::thread::spawn(move || drop(guard)).join().unwrap();
        until_empty(&client).await;
    }
}
