//! How a lock goes from one to the next, and how the lease of many is kept.

use crate::order::until_waiting;
use docent::Mutex;
use docent::locks::MutexGuard;
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::{MultiOp, OpCode, Request};
use docent_tests::{SHORT_SESSION, builder, connect, soon};
use futures_util::future::join_all;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

const LONG_SESSION: Duration = Duration::from_secs(60);

both_backends! {
    async fn what_was_dropped_without_a_link_is_free_for_a_try_that_follows(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let mut guard = soon(mutex.acquire()).await.unwrap();
        // The delete could not be sent, or its reply is not known: it is ahead of the try on the next link
        // all the same.
        for round in 0..5 {
            proxy.cut().await;
            drop(guard);
            let trying = tokio::spawn(mutex.try_acquire());
            proxy.heal().await.unwrap();
            guard = soon(trying).await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }

    async fn the_next_in_line_takes_over_without_a_trip_right_after_its_own_write(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        // A write is recent for a sixth of the timeout: ten seconds, which outlast a busy machine.
        let next = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&next, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        proxy.until(|trace| trace.iter().filter(|frame| frame.is_reply(OpCode::GetData)).count() == 2).await;
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        assert!(!proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)), "its own create was proof enough");
    }

    async fn the_next_in_line_proves_its_node_when_its_last_write_is_old(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let next = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&next, "/lock").unwrap().acquire());
        // A ping goes out once nothing was sent for a sixth of the timeout.
        proxy.until(|trace| trace.iter().filter(|frame| frame.is_reply(OpCode::Ping)).count() == 2).await;
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        assert!(proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)));
    }

    async fn the_next_in_line_proves_its_node_after_a_reconnect(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let next = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&next, "/lock").unwrap().acquire());
        until_waiting(&Mutex::new(&holder, "/lock").unwrap(), 2).await;
        proxy.until(|trace| trace.iter().filter(|frame| frame.is_reply(OpCode::GetData)).count() == 2).await;
        proxy.reset().await;
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        assert!(proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)));
    }

    async fn heartbeats_check_every_guard_in_turn_and_never_more_than_64(backend: Backend) {
        const GUARDS: usize = 150;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let guards = join_all((0..GUARDS).map(|n| {
            let acquire = Mutex::new(&client, &format!("/lock-{n}")).unwrap().acquire();
            async move { acquire.await.unwrap() }
        }));
        let guards = soon(guards).await;
        let checked = Arc::new(StdMutex::new((HashMap::<String, usize>::new(), 0)));
        let seen = Arc::clone(&checked);
        proxy.add(
            Rule::on(OpCode::Multi)
                .when(move |request| {
                    if let Request::Multi(ops) = request {
                        let mut seen = seen.lock().unwrap();
                        for op in ops {
                            // The first one of a guard records since when it holds.
                            assert!(matches!(
                                op,
                                MultiOp::Check { version: -1, .. } | MultiOp::SetData { version: 0, .. }
                            ));
                            *seen.0.entry(op.path().to_owned()).or_default() += 1;
                        }
                        seen.1 = seen.1.max(ops.len());
                    }
                    false
                })
                .swallow_reply(),
        );
        soon(async {
            while checked.lock().unwrap().0.len() < GUARDS {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let (paths, largest) = checked.lock().unwrap().clone();
        assert!(largest <= 64);
        let most = paths.values().max().unwrap();
        assert!(*most <= 2, "one guard was checked {most} times before others were checked once");
        assert!(guards.iter().all(MutexGuard::is_held));
        let fences: HashSet<_> = guards.iter().map(MutexGuard::fence).collect();
        assert_eq!(fences.len(), GUARDS);
    }
}
