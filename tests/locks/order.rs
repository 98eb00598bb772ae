//! Mutual exclusion, first come first served, at most two wake-ups.

use crate::{both_backends, builder, connect};
use docent::locks::{AcquireError, Role};
use docent::{ErrorKind, Fence, LostReason, Mutex};
use docent_battery::{Backend, FrameKind, Traced};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, soon, while_progressing};
use futures_util::future::{join_all, try_join_all};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

const CONTENDERS: usize = 32;
const ACQUISITIONS: usize = 1_000;

both_backends! {
    async fn contenders_take_turns_in_order_and_a_release_wakes_at_most_two(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..CONTENDERS).map(|_| connect(&server))).await;
        let busy = Arc::new(AtomicBool::new(false));
        let fences = Arc::new(StdMutex::new(Vec::<Fence>::new()));
        let work = clients.iter().enumerate().map(|(n, client)| {
            let mutex = Mutex::new(client, "/lock").unwrap();
            let (busy, fences) = (busy.clone(), fences.clone());
            let rounds = ACQUISITIONS / CONTENDERS + usize::from(n < ACQUISITIONS % CONTENDERS);
            tokio::spawn(async move {
                for _ in 0..rounds {
                    let guard = mutex.acquire().await.unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst), "two hold the lock");
                    fences.lock().unwrap().push(guard.fence());
                    docent_tests::pause().await;
                    assert!(guard.is_held());
                    busy.store(false, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            })
        });
        while_progressing(|| fences.lock().unwrap().len(), try_join_all(work)).await.unwrap();

        let fences = fences.lock().unwrap().clone();
        assert_eq!(fences.len(), ACQUISITIONS);
        // A fence is the transaction that created the ticket. Grants in the order of fences are first come,
        // first served.
        assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "fences do not increase");
        for (path, waiters) in wakeups(&server.front().trace()) {
            assert!(waiters <= 2, "the release of {path} woke {waiters} other waiters");
        }
        soon(join_all(clients.iter().map(docent::Client::close))).await;
    }

    async fn waiters_are_served_in_order_of_arrival(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let holder = soon(mutex.acquire()).await.unwrap();
        let (served, order) = (Arc::new(StdMutex::new(Vec::new())), 0..5);
        let mut waiters = Vec::new();
        for n in order.clone() {
            let (acquire, served) = (mutex.acquire(), served.clone());
            waiters.push(tokio::spawn(async move {
                let guard = acquire.await.unwrap();
                served.lock().unwrap().push(n);
                guard.release().await.unwrap();
            }));
            until_waiting(&mutex, n + 2).await;
        }
        soon(holder.release()).await.unwrap();
        soon(try_join_all(waiters)).await.unwrap();
        assert_eq!(*served.lock().unwrap(), order.collect::<Vec<_>>());
    }

    async fn participants_are_listed_holder_first_with_identity_and_fence(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string())
            .identity("host-7").connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        assert_eq!(soon(mutex.participants()).await.unwrap(), []);
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        until_waiting(&mutex, 2).await;

        let participants = soon(mutex.participants()).await.unwrap();
        assert_eq!(participants[0].fence, guard.fence());
        assert!(participants[0].holds && !participants[1].holds);
        assert!(guard.path().ends_with(&participants[0].name));
        for participant in &participants {
            assert_eq!(participant.identity, "host-7");
            assert_eq!(Some(participant.session_id), client.session_id());
            assert_eq!(participant.role, Role::Exclusive);
            assert!(participant.age() < PATIENCE, "{:?}", participant.since);
        }
        assert_eq!(participants.iter().map(|p| p.sequence).collect::<Vec<_>>(), [0, 1]);
        assert!(participants[0].age() >= participants[1].age());
        waiting.abort();
    }

    async fn try_acquire_takes_a_free_lock_and_writes_nothing_for_a_held_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.try_acquire()).await.unwrap();
        let before = server.front().trace().len();
        assert!(matches!(soon(mutex.try_acquire()).await, Err(AcquireError::Busy(_))));
        let trace = server.front().trace();
        assert!(trace[before..].iter().all(|frame| !frame.is_request(OpCode::Create2)));
        soon(guard.release()).await.unwrap();
        let _ = soon(mutex.try_acquire()).await.unwrap();
    }

    async fn a_try_right_after_a_drop_succeeds(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let mut guard = soon(mutex.acquire()).await.unwrap();
        for round in 0..20 {
            drop(guard);
            guard = soon(mutex.try_acquire()).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }

    async fn the_locks_node_is_deleted_once_its_line_is_empty(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/locks/lock").unwrap();
        let first = soon(mutex.acquire()).await.unwrap();
        let second = tokio::spawn(mutex.acquire());
        until_waiting(&mutex, 2).await;
        soon(first.release()).await.unwrap();
        let second = soon(second).await.unwrap().unwrap();
        assert!(client.exists("/locks/lock").await.unwrap().is_some());
        soon(second.release()).await.unwrap();
        // The servers check for empty containers periodically, here every 200 ms.
        for path in ["/locks/lock", "/locks"] {
            soon(async { while client.exists(path).await.unwrap().is_some() {} }).await;
        }
    }

    async fn acquire_timeout_does_not_end_early_and_leaves_no_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let (start, timeout) = (tokio::time::Instant::now(), Duration::from_millis(300));
        assert!(matches!(soon(mutex.acquire_timeout(timeout)).await, Err(AcquireError::TimedOut(_))));
        assert!(start.elapsed() >= timeout);
        until_waiting(&mutex, 1).await;
        assert!(guard.is_held());
    }

    async fn a_guards_transaction_is_applied_only_while_it_holds(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/value", "old", docent::CreateMode::Persistent).await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let results = guard.transaction().set("/value", "new", None).commit().await.unwrap();
        assert_eq!(results.len(), 1, "the guard's check must not be among the results");
        assert_eq!(client.get("/value").await.unwrap().data, "new");
        soon(guard.verify()).await.unwrap();

        // Another client deletes the node, so the transaction fails as a whole.
        client.delete(&guard.path(), None).await.unwrap();
        let error = soon(guard.transaction().set("/value", "wrong", None).commit()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost(LostReason::NodeDeleted));
        assert!(soon(guard.verify()).await.is_err());
        assert_eq!(client.get("/value").await.unwrap().data, "new");
    }
}

/// For each deleted ticket, the number of links that were notified, except its owner's.
fn wakeups(trace: &[Traced]) -> HashMap<String, usize> {
    let deleted = trace.iter().filter(|frame| frame.is_request(OpCode::Delete));
    let owner: HashMap<_, _> = deleted.filter_map(|frame| Some((frame.path.clone()?, frame.link))).collect();
    let mut woken: HashMap<String, HashSet<u64>> = HashMap::new();
    for event in trace.iter().filter(|frame| frame.kind == FrameKind::Event) {
        let Some(path) = &event.path else { continue };
        if owner.get(path) != Some(&event.link) {
            woken.entry(path.clone()).or_default().insert(event.link);
        }
    }
    woken.into_iter().map(|(path, links)| (path, links.len())).collect()
}

/// Waits until that many tickets are in the line.
pub(crate) async fn until_waiting(mutex: &Mutex, count: usize) {
    soon(async {
        while mutex.participants().await.unwrap().len() != count {
            docent_tests::pause().await;
        }
    })
    .await;
}
