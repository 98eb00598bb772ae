//! Never more than the limit, first come first served, all or none, at most three wake-ups.

use super::until_participants;
use crate::{builder, connect};
use docent::locks::{AcquireError, Role};
use docent::{Client, ErrorKind, Semaphore};
use docent_battery::{Backend, FrameKind, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::future::{join_all, try_join_all};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::time::Instant;

const LIMIT: u32 = 3;

fn semaphore(client: &Client) -> Semaphore {
    Semaphore::new(client, "/semaphore", LIMIT).unwrap()
}

both_backends! {
    async fn there_are_never_more_permits_than_the_limit(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..8).map(|_| connect(&server))).await;
        let (out, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let work = clients.iter().enumerate().map(|(n, client)| {
            let (semaphore, out, most) = (semaphore(client), out.clone(), most.clone());
            tokio::spawn(async move {
                for round in 0..15 {
                    let permits = 1 + (n + round) as u32 % LIMIT;
                    let permit = semaphore.acquire_many(permits).await.unwrap();
                    assert_eq!(permit.permits(), permits as usize);
                    let now = out.fetch_add(permits, Ordering::SeqCst) + permits;
                    assert!(now <= LIMIT, "{now} permits are in use");
                    most.fetch_max(now, Ordering::SeqCst);
                    // Long enough for other tasks to acquire permits.
                    semaphore.participants().await.unwrap();
                    permit.verify().await.unwrap();
                    assert!(permit.is_held());
                    out.fetch_sub(permits, Ordering::SeqCst);
                    permit.release().await.unwrap();
                }
            })
        });
        soon(try_join_all(work)).await.unwrap();
        assert_eq!(most.load(Ordering::SeqCst), LIMIT);
        until_participants(&semaphore(&clients[0]), 0).await;
    }

    async fn waiters_are_served_in_order_of_arrival_including_large_requests(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let semaphore = semaphore(&client);
        let one = soon(semaphore.acquire()).await.unwrap();
        let rest = soon(semaphore.acquire_many(LIMIT - 1)).await.unwrap();
        let served = Arc::new(StdMutex::new(Vec::new()));
        let mut waiters = Vec::new();
        // When its turn comes, the client that wants all permits has three tickets. Each waiter behind it has
        // one.
        for (n, (permits, participants)) in [(LIMIT, 6), (1, 7), (1, 8)].into_iter().enumerate() {
            let (acquire, served) = (semaphore.acquire_many(permits), served.clone());
            waiters.push(tokio::spawn(async move {
                let permit = acquire.await.unwrap();
                served.lock().unwrap().push(n);
                permit.release().await.unwrap();
            }));
            until_participants(&semaphore, participants).await;
        }
        // A permit becomes available and is reserved for the first waiter, which wants all of them.
        soon(one.release()).await.unwrap();
        until_participants(&semaphore, 7).await;
        assert!(served.lock().unwrap().is_empty());
        soon(rest.release()).await.unwrap();
        soon(try_join_all(waiters)).await.unwrap();
        assert_eq!(served.lock().unwrap()[0], 0);
        assert_eq!(served.lock().unwrap().len(), 3);
    }

    async fn a_release_wakes_the_waiter_with_the_turn_and_at_most_the_next_two(backend: Backend) {
        let server = backend.start().await;
        let holder = connect(&server).await;
        let semaphore = Semaphore::new(&holder, "/semaphore", 1).unwrap();
        let held = soon(semaphore.acquire()).await.unwrap();
        let mut waiters = Vec::new();
        for n in 0..6 {
            let proxy = server.proxy().await;
            let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            let task = tokio::spawn(Semaphore::new(&client, "/semaphore", 1).unwrap().acquire());
            until_participants(&semaphore, n + 2).await;
            let ready = |trace: &[Traced]| {
                let count = |op| trace.iter().filter(|frame| frame.is_reply(op)).count();
                if n == 0 { count(OpCode::GetChildren2) >= 3 } else { count(OpCode::SetWatches) >= 1 }
            };
            soon(proxy.until(ready)).await;
            waiters.push((proxy, task, client));
        }
        soon(held.release()).await.unwrap();
        let (_, first, _) = &mut waiters[0];
        let permit = soon(first).await.unwrap().unwrap();
        // The second waiter now has the turn, and the one behind it looks ahead. No other waiter received an
        // event.
        until_participants(&semaphore, 6).await;
        for (n, (proxy, task, _)) in waiters[1..].iter().enumerate() {
            assert!(!task.is_finished());
            let events = proxy.trace().iter().filter(|frame| frame.kind == FrameKind::Event).count();
            assert!(n <= 1 || events == 0, "waiter {n} was woken");
        }
        assert!(permit.is_held());
        for (_, task, _) in &waiters[1..] { task.abort(); }
    }

    async fn a_waiter_that_crashes_blocks_no_client_longer_than_its_session(backend: Backend) {
        let server = backend.start().await;
        let (holder, crashing, last) = (connect(&server).await, connect(&server).await, connect(&server).await);
        let held = soon(semaphore(&holder).acquire_many(LIMIT)).await.unwrap();
        let crashed = tokio::spawn(semaphore(&crashing).acquire());
        until_participants(&semaphore(&holder), 4).await;
        let waiting = tokio::spawn(semaphore(&last).acquire());
        until_participants(&semaphore(&holder), 5).await;
        crashed.abort();
        server.expire(crashing.session_id().unwrap()).await.unwrap();
        soon(held.release()).await.unwrap();
        let _ = soon(waiting).await.unwrap().unwrap();
        until_participants(&semaphore(&holder), 0).await;
    }

    async fn a_closed_client_frees_its_permits(backend: Backend) {
        let server = backend.start().await;
        let (holder, other) = (connect(&server).await, connect(&server).await);
        let held = soon(semaphore(&holder).acquire_many(LIMIT)).await.unwrap();
        let waiting = tokio::spawn(semaphore(&other).acquire_many(LIMIT));
        until_participants(&semaphore(&other), 6).await;
        soon(holder.close()).await;
        assert!(!held.is_held());
        let _ = soon(waiting).await.unwrap().unwrap();
    }

    async fn a_try_right_after_a_drop_succeeds(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for round in 0..20 {
            let permit = soon(semaphore(&client).try_acquire_many(LIMIT)).await;
            drop(permit.unwrap_or_else(|error| panic!("round {round}: {error}")));
        }
    }

    async fn permits_are_released_one_at_a_time(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let semaphore = semaphore(&client);
        let mut held = Vec::new();
        for _ in 0..LIMIT {
            held.push(soon(semaphore.acquire()).await.unwrap());
        }
        assert!(matches!(soon(semaphore.try_acquire()).await, Err(AcquireError::Busy(_))));
        for permit in held {
            soon(permit.release()).await.unwrap();
            soon(soon(semaphore.try_acquire()).await.unwrap().release()).await.unwrap();
        }
    }

    async fn several_permits_are_acquired_together_or_not_at_all(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let semaphore = semaphore(&client);
        let held = soon(semaphore.acquire_many(2)).await.unwrap();
        let (start, timeout) = (Instant::now(), Duration::from_millis(200));
        let late = soon(semaphore.acquire_many_timeout(2, timeout)).await;
        assert!(matches!(late, Err(AcquireError::TimedOut(_))) && start.elapsed() >= timeout);
        assert!(matches!(soon(semaphore.try_acquire_many(2)).await, Err(AcquireError::Busy(_))));
        until_participants(&semaphore, 2).await;
        let last = soon(semaphore.acquire_timeout(docent_tests::PATIENCE)).await.unwrap();
        assert!(held.is_held() && last.is_held());
        assert_eq!((held.paths().len(), last.paths().len()), (2, 1));
    }

    async fn a_try_for_unavailable_permits_writes_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let semaphore = semaphore(&client);
        let held = soon(semaphore.try_acquire_many(LIMIT)).await.unwrap();
        let creates = || server.front().trace().iter().filter(|f| f.is_request(OpCode::Create2)).count();
        let before = creates();
        assert!(matches!(soon(semaphore.try_acquire()).await, Err(AcquireError::Busy(_))));
        assert_eq!(creates(), before);
        drop(held);
    }

    async fn participants_are_listed_holders_first(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        assert_eq!(soon(semaphore.participants()).await.unwrap(), []);
        let held = soon(semaphore.acquire()).await.unwrap();
        let peer = Semaphore::new(&other, "/semaphore", 1).unwrap();
        let next = tokio::spawn(peer.acquire());
        until_participants(&semaphore, 2).await;
        let last = tokio::spawn(semaphore.acquire());
        until_participants(&semaphore, 3).await;
        let all = soon(semaphore.participants()).await.unwrap();
        assert_eq!(all.iter().map(|p| p.holds).collect::<Vec<_>>(), [true, false, false]);
        assert!(all.iter().all(|p| p.role == Role::Shared));
        assert!(held.paths()[0].ends_with(&all[0].name));
        assert_eq!(Some(all[1].session_id), other.session_id());
        next.abort();
        last.abort();
    }

    async fn a_revoked_holder_may_keep_its_permit(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (own, peer) = (semaphore(&client), semaphore(&other));
        let held = soon(own.acquire_many(LIMIT)).await.unwrap();
        let waiting = tokio::spawn(own.acquire());
        until_participants(&peer, 4).await;
        let behind = tokio::spawn(own.acquire());
        until_participants(&peer, 5).await;
        let all = soon(peer.participants()).await.unwrap();
        soon(peer.revoke(&all[1])).await.unwrap();
        soon(held.revoked()).await;
        assert!(held.is_held());
        let error = soon(peer.revoke(&all[4])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&all[4].name) && error.to_string().contains("must have a permit"));
        waiting.abort();
        behind.abort();
    }

    async fn a_permits_transaction_is_applied_only_while_all_of_it_is_held(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/value", "old", docent::CreateMode::Persistent).await.unwrap();
        let held = soon(semaphore(&client).acquire_many(2)).await.unwrap();
        let results = soon(held.transaction().set("/value", "new", None).commit()).await.unwrap();
        assert_eq!(results.len(), 1);
        client.delete(&held.paths()[1], None).await.unwrap();
        let error = soon(held.transaction().set("/value", "wrong", None).commit()).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        assert_eq!(client.get("/value").await.unwrap().data, "new");
    }
}
