//! How a lock goes from one to the next, and how the lease of many is kept.

use crate::order::until_waiting;
use crate::rw_lock::until_in_line;
use docent::locks::MutexGuard;
use docent::{CreateMode, Mutex, RwLock};
use docent_battery::{Backend, Direction, Flow, FrameKind, Rule, Traced, both_backends};
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
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        assert!(!proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)), "its own create was proof enough");
    }

    async fn a_reader_behind_a_writer_proves_its_node_when_its_last_write_is_old(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let next = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let held = soon(RwLock::new(&holder, "/lock").unwrap().write()).await.unwrap();
        let waiting = tokio::spawn(RwLock::new(&next, "/lock").unwrap().read());
        // A ping goes out once nothing was sent for a sixth of the timeout. Many readers may wait: they write
        // nothing meanwhile.
        proxy.until(|trace| trace.iter().filter(|frame| frame.is_reply(OpCode::Ping)).count() == 2).await;
        assert!(!proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)));
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
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        proxy.reset().await;
        proxy.until(|trace| trace.iter().filter(|frame| frame.is_reply(OpCode::SetWatches)).count() == 2).await;
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        assert!(proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)));
    }

    async fn with_eight_contenders_an_acquire_and_its_release_are_at_most_six_requests(backend: Backend) {
        const CONTENDERS: usize = 8;
        const ROUNDS: usize = 12;
        let server = backend.start().await;
        connect(&server).await.create("/lock", "", CreateMode::Persistent).await.unwrap();
        let clients = join_all((0..CONTENDERS).map(|_| connect(&server))).await;
        let before = server.front().trace().len();
        let work = clients.iter().map(|client| {
            let mutex = Mutex::new(client, "/lock").unwrap();
            async move {
                for _ in 0..ROUNDS {
                    mutex.acquire().await.unwrap().release().await.unwrap();
                }
            }
        });
        soon(join_all(work)).await;
        let trace = server.front().trace()[before..].to_vec();
        let count = |op| trace.iter().filter(|frame| frame.is_request(op)).count();
        let counts = |frame: &&Traced| frame.kind == FrameKind::Request && frame.op != Some(OpCode::Ping);
        let all = trace.iter().filter(counts).count();
        // The watch on a holder's own node is that of its ticket, and its delete uses it up. A machine that
        // is slow makes those who are next keep their leases young.
        let all = all - count(OpCode::Multi);
        assert!(all <= 6 * CONTENDERS * ROUNDS, "{all} requests");
        assert_eq!(count(OpCode::RemoveWatches), 0);
        assert!(count(OpCode::GetChildren2) <= 2 * CONTENDERS * ROUNDS);
    }

    async fn the_next_in_line_keeps_its_lease_young_and_takes_over_without_a_trip(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let next = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&next, "/lock").unwrap().acquire());
        let checks = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::Multi)).count();
        proxy.until(|trace| checks(trace) == 2).await;
        let before = proxy.trace().len();
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        let trace = proxy.trace()[before..].to_vec();
        let event = trace.iter().position(|frame| frame.kind == FrameKind::Event).unwrap();
        let between = trace[event..].iter().filter(|frame| frame.is_request(OpCode::GetChildren2));
        assert_eq!(between.count(), 0, "nothing was asked between the event and the guard");
    }

    async fn one_behind_the_next_looks_ahead_and_is_not_woken_by_one_in_the_middle_that_gives_up(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let middle = tokio::spawn(Mutex::new(&holder, "/lock").unwrap().acquire());
        until_waiting(&Mutex::new(&holder, "/lock").unwrap(), 2).await;
        let last = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&last, "/lock").unwrap().acquire());
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        // Its predecessor leaves unseen, and then the one that it watches: the listing shows that it is
        // first.
        middle.abort();
        until_waiting(&Mutex::new(&holder, "/lock").unwrap(), 2).await;
        let events = |trace: &[Traced]| trace.iter().filter(|frame| frame.kind == FrameKind::Event).count();
        assert_eq!(events(&proxy.trace()), 0);
        soon(held.release()).await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        soon(guard.verify()).await.unwrap();
    }

    async fn a_ticket_whose_end_arrives_with_its_other_answers_does_not_hold(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let theirs = Mutex::new(&holder, "/lock").unwrap();
        let held = soon(theirs.acquire()).await.unwrap();
        let middle = tokio::spawn(theirs.acquire());
        until_waiting(&theirs, 2).await;
        let last = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&last, "/lock").unwrap().acquire());
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        middle.abort();
        until_waiting(&theirs, 2).await;
        // The listing that shows it first, the other answers and the end of its node arrive together.
        let watches = proxy.add(Rule::on(OpCode::SetWatches).hold());
        soon(held.release()).await.unwrap();
        soon(watches.fired()).await;
        proxy.set_flow(Direction::ToClient, Flow::Hold);
        proxy.set_flow(Direction::ToServer, Flow::Pass);
        until_waiting(&theirs, 1).await;
        let own = soon(theirs.participants()).await.unwrap().remove(0);
        holder.delete(&format!("/lock/{}", own.name), None).await.unwrap();
        until_waiting(&theirs, 0).await;
        proxy.heal().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        soon(guard.verify()).await.unwrap();
    }

    async fn a_reader_that_asked_on_an_older_link_proves_its_node(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let theirs = RwLock::new(&holder, "/lock").unwrap();
        let held = soon(theirs.write()).await.unwrap();
        let second = tokio::spawn(theirs.write());
        until_in_line(&theirs, 2).await;
        let third = tokio::spawn(theirs.write());
        until_in_line(&theirs, 3).await;
        let reader = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let waiting = tokio::spawn(RwLock::new(&reader, "/lock").unwrap().read());
        let answers = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::SetWatches)).count();
        proxy.until(|trace| answers(trace) == 1).await;
        // With the end of the second it watches both others.
        second.abort();
        proxy.until(|trace| answers(trace) == 2).await;
        // On the next link the ends of both are told path by path, with those of other nodes before or after.
        proxy.cut().await;
        third.abort();
        until_in_line(&theirs, 2).await;
        soon(held.release()).await.unwrap();
        until_in_line(&theirs, 1).await;
        proxy.heal().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)));
        soon(guard.verify()).await.unwrap();
    }

    async fn a_revocation_before_the_first_watch_reaches_the_guard(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let theirs = Mutex::new(&holder, "/lock").unwrap();
        let held = soon(theirs.acquire()).await.unwrap();
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let watches = proxy.add(Rule::on(OpCode::SetWatches).hold());
        let waiting = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        soon(watches.fired()).await;
        let own = soon(theirs.participants()).await.unwrap()[1].clone();
        soon(theirs.revoke(&own)).await.unwrap();
        proxy.heal().await.unwrap();
        soon(held.release()).await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        soon(guard.revoked()).await;
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
                docent_tests::pause().await;
            }
        })
        .await;
        let (paths, largest) = checked.lock().unwrap().clone();
        assert!(largest <= 64);
        let most = paths.values().max().unwrap();
        assert!(*most <= 2, "one guard was checked {most} times before others were checked once");
        assert!(guards.iter().all(|guard| guard.is_held()));
        let fences: HashSet<_> = guards.iter().map(MutexGuard::fence).collect();
        assert_eq!(fences.len(), GUARDS);
    }
}
