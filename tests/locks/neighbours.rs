//! Other clients in the line: foreign children, Curator's contenders, revocation, numbers near the end of the
//! counter.

use docent::locks::AcquireError;
use docent::node::{Acl, Permissions};
use docent::{CreateMode, Election, ErrorKind, Mutex};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};
use std::io;
use std::sync::{Arc, Mutex as StdMutex};

both_backends! {
    async fn foreign_children_are_ignored_and_curators_contenders_are_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for name in ["foo", "lock", "lock-", "lock-abc", "lock-12345678901", "_c_-lock-000000000", "-0000000001"] {
            other.create(&format!("/lock/{name}"), "", CreateMode::Persistent).await.unwrap();
        }
        let mutex = Mutex::new(&client, "/lock").unwrap();
        soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
        // Names as Curator and go-zookeeper create them.
        for prefix in ["_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-", "_c_8eb6557ec51a32d1e0cb91e4d5e9a5c5-lock-"] {
            let path = format!("/lock/{prefix}");
            let neighbour = other.create(&path, "", CreateMode::EphemeralSequential).await.unwrap();
            let waiting = tokio::spawn(mutex.acquire());
            crate::order::until_waiting(&mutex, 2).await;
            other.delete(&neighbour.path, None).await.unwrap();
            soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
        }
    }

    async fn kazoos_contenders_are_waited_for_if_configured_as_neighbours(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let kazoo = "/lock/8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__";
        let peer = other.create(kazoo, "", CreateMode::EphemeralSequential).await.unwrap().path;
        let mutex = Mutex::builder(&client, "/lock").neighbours("__lock__").build().unwrap();
        assert!(matches!(soon(mutex.try_acquire()).await, Err(AcquireError::Busy(_))));
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        let line = soon(mutex.participants()).await.unwrap();
        assert!(line[0].holds && peer.ends_with(&line[0].name) && !line[1].holds);
        // The waiter does not wait for a neighbour that arrives later.
        other.create(kazoo, "", CreateMode::EphemeralSequential).await.unwrap();
        other.delete(&peer, None).await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        let line = soon(mutex.participants()).await.unwrap();
        assert!(line[0].fence == guard.fence() && line[1].name.contains("__lock__"));
    }

    async fn a_neighbour_without_read_permission_is_waited_for_and_no_watch_remains(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let closed = [Acl::digest("somebody", "else", Permissions::ALL)];
        for leaves_before_it_is_watched in [false, true] {
            let peer = other.create("/lock/lock-", "", CreateMode::EphemeralSequential).await.unwrap().path;
            other.set_acl(&peer, closed.clone(), None).await.unwrap();
            let before = proxy.trace().len();
            let watched = Rule::on(OpCode::Exists);
            let waiting = if leaves_before_it_is_watched {
                let held = proxy.add(watched.hold());
                let waiting = tokio::spawn(mutex.acquire());
                soon(held.fired()).await;
                waiting
            } else {
                let waiting = tokio::spawn(mutex.acquire());
                proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::Exists))).await;
                waiting
            };
            assert!(!waiting.is_finished());
            other.delete(&peer, None).await.unwrap();
            proxy.heal().await.unwrap();
            soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
            if let Some(embedded) = server.as_embedded() {
                soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
            }
        }
    }

    async fn a_revoked_holder_may_release_the_lock(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let peer = Mutex::new(&other, "/lock").unwrap();
        let participant = soon(peer.participants()).await.unwrap()[0].clone();
        soon(peer.revoke(&participant)).await.unwrap();
        assert_eq!(other.get(&guard.path()).await.unwrap().data, "__REVOKE__");
        soon(guard.revoked()).await;
        assert!(guard.is_held(), "revoking only asks the holder");
        soon(guard.release()).await.unwrap();
        assert_eq!(soon(peer.revoke(&participant)).await.unwrap_err().kind(), ErrorKind::NoNode);
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
        // Created by hand, like the node of a neighbour whose number wrapped: created earlier, with a higher
        // or negative number.
        let earlier = "/lock/_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-2147483647";
        other.create(earlier, "", CreateMode::Ephemeral).await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        let later = "/lock/_c_0a794062-0b31-421c-9cfe-0699f14437da-lock--2147483648";
        other.create(later, "", CreateMode::Ephemeral).await.unwrap();
        assert!(!waiting.is_finished());
        other.delete(earlier, None).await.unwrap();
        // The waiter does not wait for the later node, although its number is lower.
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.is_held());
    }

    async fn an_empty_line_can_be_reset_and_fences_keep_increasing(backend: Backend) {
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

/// A refused number: the first of the last 2^20.
const REFUSED: i32 = i32::MAX - (1 << 20) + 1;

#[tokio::test(start_paused = true)]
async fn a_ticket_with_a_number_near_the_end_is_refused_and_leaves_no_node_until_the_line_is_reset() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    client.create("/lock", "", CreateMode::Persistent).await.unwrap();
    let path = server.path("lock");
    assert!(server.as_embedded().unwrap().skip_numbers(&path, REFUSED - 1));
    let mutex = Mutex::new(&client, "/lock").unwrap();
    let last = soon(mutex.acquire()).await.unwrap();
    assert!(last.path().ends_with(&format!("-lock-{}", REFUSED - 1)));
    for _ in 0..2 {
        let Err(AcquireError::Core(error)) = soon(mutex.acquire()).await else {
            panic!("expected a refusal")
        };
        assert_eq!(error.kind(), ErrorKind::SequenceExhausted);
        assert!(error.to_string().contains("near the end of the servers' counter"), "{error}");
    }
    crate::order::until_waiting(&mutex, 1).await;
    assert!(last.is_held(), "the earlier holder must not be affected");
    soon(last.release()).await.unwrap();
    soon(mutex.reset()).await.unwrap();
    assert!(soon(mutex.acquire()).await.unwrap().path().ends_with("-lock-0000000000"));
}

#[tokio::test(start_paused = true)]
async fn a_warning_is_logged_once_half_of_the_numbers_are_used() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    client.create("/lock", "", CreateMode::Persistent).await.unwrap();
    let embedded = server.as_embedded().unwrap();
    assert!(embedded.skip_numbers(&server.path("lock"), (1 << 30) - 1));
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _printing = tracing::subscriber::set_default(subscriber);
    let warnings = || log.text().matches("less than half of the path's sequence numbers are left").count();
    let mutex = Mutex::new(&client, "/lock").unwrap();
    drop(soon(mutex.acquire()).await.unwrap());
    assert_eq!(warnings(), 0);
    drop(soon(mutex.acquire()).await.unwrap());
    assert_eq!(warnings(), 1, "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_with_a_number_near_the_end_is_refused_and_leaves_no_node_until_the_line_is_reset() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    client.create("/election", "", CreateMode::Persistent).await.unwrap();
    assert!(server.as_embedded().unwrap().skip_numbers(&server.path("election"), REFUSED));
    let election = Election::new(&client, "/election").unwrap();
    let error = soon(election.campaign()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SequenceExhausted);
    let run = election.run(|_| async { unreachable!("no candidate can lead") });
    let error: docent::Error = soon(run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SequenceExhausted);
    soon(async { while !election.candidates().await.unwrap().is_empty() {} }).await;
    soon(election.reset()).await.unwrap();
    drop(soon(election.campaign()).await.unwrap());
}

/// Lines that were logged.
#[derive(Clone, Default)]
struct Log(Arc<StdMutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
