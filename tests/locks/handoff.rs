//! How a lock is handed to the next waiter, and how the lease of many guards is renewed.

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
    async fn a_try_right_after_a_drop_without_a_link_succeeds(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let mut guard = soon(mutex.acquire()).await.unwrap();
        // The delete was not sent, or its outcome is unknown. It still precedes the try on the next link.
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
        // A write is recent for a sixth of the timeout: ten seconds, longer than a busy machine needs.
        let next = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&next, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        soon(held.release()).await.unwrap();
        let _guard = soon(waiting).await.unwrap().unwrap();
        assert!(!proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)), "another write was sent before the grant");
    }

    async fn a_reader_behind_a_writer_proves_its_node_when_its_last_write_is_old(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let next = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let held = soon(RwLock::new(&holder, "/lock").unwrap().write()).await.unwrap();
        let waiting = tokio::spawn(RwLock::new(&next, "/lock").unwrap().read());
        // A ping is sent if nothing was sent for a sixth of the timeout. Many readers may wait, and they
        // write nothing meanwhile.
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
        // A holder's watch on its own node is that of its ticket, and the delete fires it. On a slow machine,
        // the next waiters also renew their leases.
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
        assert_eq!(between.count(), 0, "the line was listed between event and grant");
    }

    async fn the_second_waiter_watches_the_holder_and_is_not_woken_by_its_cancelled_predecessor(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let middle = tokio::spawn(Mutex::new(&holder, "/lock").unwrap().acquire());
        until_waiting(&Mutex::new(&holder, "/lock").unwrap(), 2).await;
        let last = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&last, "/lock").unwrap().acquire());
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        // The waiter's predecessor leaves unnoticed, and then the node that the waiter watches is deleted.
        // The listing shows that the waiter is first.
        middle.abort();
        until_waiting(&Mutex::new(&holder, "/lock").unwrap(), 2).await;
        let events = |trace: &[Traced]| trace.iter().filter(|frame| frame.kind == FrameKind::Event).count();
        assert_eq!(events(&proxy.trace()), 0);
        soon(held.release()).await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        soon(guard.verify()).await.unwrap();
    }

    async fn a_ticket_whose_deletion_arrives_with_its_other_replies_does_not_hold(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let peer = Mutex::new(&holder, "/lock").unwrap();
        let held = soon(peer.acquire()).await.unwrap();
        let middle = tokio::spawn(peer.acquire());
        until_waiting(&peer, 2).await;
        let last = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&last, "/lock").unwrap().acquire());
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        middle.abort();
        until_waiting(&peer, 2).await;
        // The listing in which the waiter is first, the other replies and the deletion of its node arrive
        // together.
        let watches = proxy.add(Rule::on(OpCode::SetWatches).hold());
        soon(held.release()).await.unwrap();
        soon(watches.fired()).await;
        proxy.set_flow(Direction::ToClient, Flow::Hold);
        proxy.set_flow(Direction::ToServer, Flow::Pass);
        until_waiting(&peer, 1).await;
        let own = soon(peer.participants()).await.unwrap().remove(0);
        holder.delete(&format!("/lock/{}", own.name), None).await.unwrap();
        until_waiting(&peer, 0).await;
        proxy.heal().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        soon(guard.verify()).await.unwrap();
    }

    async fn a_reader_whose_watches_were_set_on_an_older_link_proves_its_node(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let peer = RwLock::new(&holder, "/lock").unwrap();
        let held = soon(peer.write()).await.unwrap();
        let second = tokio::spawn(peer.write());
        until_in_line(&peer, 2).await;
        let third = tokio::spawn(peer.write());
        until_in_line(&peer, 3).await;
        let reader = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let waiting = tokio::spawn(RwLock::new(&reader, "/lock").unwrap().read());
        let answers = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::SetWatches)).count();
        proxy.until(|trace| answers(trace) == 1).await;
        // When the second writer leaves, the reader watches both others.
        second.abort();
        proxy.until(|trace| answers(trace) == 2).await;
        // On the next link the server reports both deletions path by path, among events of other nodes.
        proxy.cut().await;
        third.abort();
        until_in_line(&peer, 2).await;
        soon(held.release()).await.unwrap();
        until_in_line(&peer, 1).await;
        proxy.heal().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(proxy.trace().iter().any(|frame| frame.is_request(OpCode::Multi)));
        soon(guard.verify()).await.unwrap();
    }

    async fn a_revocation_before_the_first_watch_reaches_the_guard(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let peer = Mutex::new(&holder, "/lock").unwrap();
        let held = soon(peer.acquire()).await.unwrap();
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let watches = proxy.add(Rule::on(OpCode::SetWatches).hold());
        let waiting = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        soon(watches.fired()).await;
        let own = soon(peer.participants()).await.unwrap()[1].clone();
        soon(peer.revoke(&own)).await.unwrap();
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
                            // A guard's first heartbeat records the beginning of its hold.
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
        assert!(*most <= 2, "one guard was checked {most} times before others were checked");
        assert!(guards.iter().all(|guard| guard.is_held()));
        let fences: HashSet<_> = guards.iter().map(MutexGuard::fence).collect();
        assert_eq!(fences.len(), GUARDS);
    }
}
