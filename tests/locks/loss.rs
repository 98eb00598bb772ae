//! A holder knows that its lock is lost before another client can hold it, and a lost guard stays lost.

use crate::{both_backends, builder, connect};
use docent::locks::MutexGuard;
use docent::node::{Acl, Permissions};
use docent::{Client, ConnectionState, CreateMode, ErrorKind, LostReason, Mutex};
use docent_battery::{Backend, Direction, Flow, Proxy, Rule, TestServer, Traced};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, soon};
use std::time::Duration;
use tokio::time::Instant;

/// Returns a holder whose link can be broken, and its proxy.
async fn holder(server: &TestServer) -> (Client, Proxy, Mutex, MutexGuard) {
    let proxy = server.proxy().await;
    let client =
        builder(server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
    let mutex = Mutex::new(&client, "/lock").unwrap();
    let guard = soon(mutex.acquire()).await.unwrap();
    (client, proxy, mutex, guard)
}

both_backends! {
    async fn a_link_cut_for_less_than_the_lease_loses_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy, _mutex, guard) = holder(&server).await;
        let mut state = client.state();
        let before = state.current();
        proxy.cut().await;
        assert_eq!(soon(state.changed()).await.unwrap(), ConnectionState::Suspended);
        proxy.heal().await.unwrap();
        let after = soon(state.reached(ConnectionState::Connected)).await.unwrap();
        assert_eq!((after.generation, after.suspensions), (before.generation, before.suspensions + 1));
        assert!(guard.is_held());
        soon(guard.verify()).await.unwrap();
        soon(guard.release()).await.unwrap();
    }

    /// The client repeatedly tries to end the session that it gave up. Each attempt reaches the server and
    /// must not keep the session alive.
    async fn the_node_of_a_holder_that_gets_no_replies_is_deleted_once_its_guard_is_dropped(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy, _mutex, guard) = holder(&server).await;
        let other = connect(&server).await;
        let (path, mut state) = (guard.path(), client.state());
        proxy.set_flow(Direction::ToClient, Flow::Swallow);
        soon(state.reached(ConnectionState::Lost)).await;
        assert!(other.exists(&path).await.unwrap().is_some(), "the work may not have stopped yet");
        drop(guard);
        soon(async { while other.exists(&path).await.unwrap().is_some() {} }).await;
    }

    async fn a_holder_whose_session_the_server_ended_is_lost_and_a_new_generation_follows(backend: Backend) {
        let server = backend.start().await;
        let (client, _proxy, mutex, guard) = holder(&server).await;
        let session = client.session_id().unwrap();
        let mut state = client.state();
        let generation = state.current().generation;
        server.expire(session).await.unwrap();
        soon(guard.lost()).await;
        assert!(!guard.is_held());
        let connected = state.wait_for(|connection| {
            *connection == ConnectionState::Connected && connection.generation > generation
        });
        let connection = soon(connected).await.unwrap();
        assert_eq!(connection.generation, generation + 1);
        assert_ne!(client.session_id(), Some(session));
        assert!(!guard.is_held(), "a lost guard must stay lost");
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
        // After the loss, a future passed to `run` is not even polled.
        assert!(soon(guard.run(async { unreachable!("the lock is lost") })).await.is_err());
    }

    /// The session outlives the lease: the servers receive the client's requests, but acknowledge none of its
    /// writes.
    async fn the_node_of_a_lost_guard_is_deleted_a_margin_later_when_its_session_lives_on(backend: Backend) {
        const TIMEOUT: Duration = Duration::from_secs(5);
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(TIMEOUT).connect().await.unwrap();
        let heartbeats: Vec<_> = (0..100).map(|_| proxy.add(Rule::on(OpCode::Multi).swallow_reply())).collect();
        let (generation, before) = (client.state().current().generation, Instant::now());
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        assert_eq!(soon(guard.lost()).await, LostReason::LeaseExpired);
        assert!(heartbeats[0].has_fired() && !heartbeats[99].has_fired());
        soon(async { while other.exists(&guard.path()).await.unwrap().is_some() {} }).await;
        let after = before.elapsed();
        assert!(after >= TIMEOUT, "the work had no margin: deleted after {after:?}");
        let mut state = client.state();
        let connection = soon(state.reached(ConnectionState::Connected)).await.unwrap();
        assert_eq!(connection.generation, generation, "the session must not have ended");
        drop(soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap());
        assert!(!guard.is_held());
    }

    async fn a_waiter_takes_a_new_ticket_when_the_whole_line_is_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let held = soon(mutex.acquire()).await.unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        let all = soon(mutex.participants()).await.unwrap();
        let mut delete = other.transaction();
        for one in all.iter().rev() {
            delete = delete.delete(&format!("/lock/{}", one.name), None);
        }
        soon(delete.delete("/lock", None).commit()).await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.is_held() && guard.fence() > all[1].fence);
        assert_eq!(soon(held.lost()).await, LostReason::NodeDeleted);
    }

    async fn a_waiter_takes_a_new_ticket_when_the_line_is_missing_at_its_next_listing(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let ahead = other.create("/lock/lock-", "", CreateMode::EphemeralSequential).await.unwrap().path;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        // Sessions of `zookeeper-client` read each node instead.
        let watches = [OpCode::SetWatches, OpCode::Exists];
        proxy.until(|trace| trace.iter().any(|frame| watches.iter().any(|op| frame.is_reply(*op)))).await;
        let peer = Mutex::new(&other, "/lock").unwrap();
        let own = soon(peer.participants()).await.unwrap()[1].clone();
        // When it is asked to leave, the waiter lists the line again.
        let listing = proxy.add(Rule::on(OpCode::GetChildren2).hold());
        soon(peer.revoke(&own)).await.unwrap();
        soon(listing.fired()).await;
        let delete = other.transaction().delete(&ahead, None).delete(&format!("/lock/{}", own.name), None);
        soon(delete.delete("/lock", None).commit()).await.unwrap();
        proxy.heal().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.is_held() && guard.fence() > own.fence);
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

    async fn a_waiters_ticket_of_a_lost_session_is_deleted_while_a_guard_keeps_the_session(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy, _mutex, guard) = holder(&server).await;
        let other = connect(&server).await;
        let _held = soon(Mutex::new(&other, "/line").unwrap().acquire()).await.unwrap();
        let (line, waiting) = (Mutex::new(&other, "/line").unwrap(), Mutex::new(&client, "/line").unwrap());
        let waiting = tokio::spawn(waiting.acquire());
        crate::order::until_waiting(&line, 2).await;
        let older = soon(line.participants()).await.unwrap().remove(1);
        let session = client.session_id().unwrap();
        assert_eq!(older.session_id, session);
        client.create("/ephemeral", "", CreateMode::Ephemeral).await.unwrap();
        proxy.cut().await;
        // Both the servers and the client keep the session, because the guard's work may not have stopped.
        let _alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        soon(async {
            loop {
                let participants = line.participants().await.unwrap();
                if participants.len() == 2 && participants[1].session_id != session {
                    return;
                }
            }
        })
        .await;
        assert_eq!(other.get("/ephemeral").await.unwrap().stat.owner, Some(session), "the node must exist");
        assert!(!guard.is_held() && !waiting.is_finished());
        waiting.abort();
    }

    async fn a_guard_whose_node_is_no_longer_readable_is_held_until_the_node_is_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy, _mutex, guard) = holder(&server).await;
        let (other, path) = (connect(&server).await, guard.path());
        let unreadable = Permissions::WRITE | Permissions::ADMIN;
        other.set_acl(&path, [Acl::new(unreadable, "world", "anyone")], None).await.unwrap();
        let checks = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::Multi)).count();
        let before = checks(&proxy.trace());
        // Six heartbeats take longer than a lease, so the refusals renew it.
        proxy.until(|trace| checks(trace) >= before + 6).await;
        assert!(guard.is_held());
        assert_eq!(guard.verify().await.unwrap_err().kind(), ErrorKind::NoAuth);
        // If other guards are checked, heartbeats omit this one. It is checked in another way, because some
        // servers do not report changes of a node that the client may not read.
        let _another = soon(Mutex::new(&client, "/another").unwrap().acquire()).await.unwrap();
        other.delete(&path, None).await.unwrap();
        assert_eq!(soon(guard.lost()).await, LostReason::NodeDeleted);
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
