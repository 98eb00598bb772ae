//! The time since when a lock is held, as other clients see it.

use crate::{builder, connect};
use docent::locks::Participant;
use docent::{Client, CreateMode, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::{MultiOp, OpCode, Request};
use docent_tests::{SHORT_SESSION, soon, until};
use std::time::SystemTime;

/// Connects a client whose heartbeats are due every third of a second.
async fn lively(server: &TestServer, connect_string: String) -> Client {
    builder(server, connect_string).session_timeout(SHORT_SESSION).label("holder").connect().await.unwrap()
}

async fn first(mutex: &Mutex) -> Participant {
    soon(mutex.participants()).await.unwrap().remove(0)
}

async fn until_recorded(mutex: &Mutex) -> SystemTime {
    let mut since = None;
    until(async || {
        since = first(mutex).await.held_since();
        since.is_some()
    })
    .await;
    since.unwrap()
}

/// True for a heartbeat that records the beginning of a hold.
fn records(request: &Request) -> bool {
    matches!(request, Request::Multi(ops) if ops.iter().any(|op| matches!(op, MultiOp::SetData { version: 0, .. })))
}

/// Waits until several more heartbeats were answered.
async fn heartbeats(proxy: &Proxy) {
    let count = || proxy.trace().iter().filter(|frame| frame.is_reply(OpCode::Multi)).count();
    let before = count();
    until(async || count() >= before + 5).await;
}

both_backends! {
    async fn a_hold_records_its_start_time_and_its_node_keeps_its_data(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (lively(&server, server.connect_string()).await, connect(&server).await);
        let mutex = Mutex::new(&other, "/lock").unwrap();
        let ahead = soon(mutex.acquire()).await.unwrap();
        let waits = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        until(async || mutex.participants().await.unwrap().len() == 2).await;
        let waiting = soon(mutex.participants()).await.unwrap().remove(1);
        soon(ahead.release()).await.unwrap();
        let guard = soon(waits).await.unwrap().unwrap();
        let since = until_recorded(&mutex).await;
        let holder = first(&mutex).await;
        assert_eq!((&holder.name, &holder.identity), (&waiting.name, &waiting.identity));
        assert!(waiting.held_since().is_none() && holder.since == waiting.since);
        assert!(since >= holder.since + SHORT_SESSION / 10, "counted from the place in the line");
        assert!(holder.client().is_some_and(|one| one.label() == Some("holder")), "{holder:?}");
        // The beginning is recorded once and never changes.
        heartbeats(server.front()).await;
        assert_eq!(first(&mutex).await.held_since(), Some(since));
        assert_eq!(soon(other.get(&guard.path())).await.unwrap().stat.version, 1);
        assert!(guard.is_held());
    }

    async fn a_client_that_writes_constantly_records_the_start_time_too(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (lively(&server, server.connect_string()).await, connect(&server).await);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&other, "/lock").unwrap();
        soon(client.create("/data", "", CreateMode::Persistent)).await.unwrap();
        // Each write renews the lease, so no heartbeat is due for that.
        let work = async {
            loop {
                client.set("/data", "x", None).await.unwrap();
            }
        };
        tokio::select! {
            () = work => {}
            _ = until_recorded(&mutex) => {}
        }
        assert!(guard.is_held());
    }

    async fn a_revocation_is_never_overwritten(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (lively(&server, server.connect_string()).await, connect(&server).await);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&other, "/lock").unwrap();
        soon(mutex.revoke(&first(&mutex).await)).await.unwrap();
        soon(guard.revoked()).await;
        heartbeats(server.front()).await;
        let holder = first(&mutex).await;
        assert!(holder.is_revoked() && holder.held_since().is_none(), "{holder:?}");
        assert_eq!(holder.identity_text(), None);
        assert!(guard.is_held(), "the heartbeats must continue");
        soon(guard.verify()).await.unwrap();
    }

    async fn readers_writers_and_permits_record_their_start_time(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (lively(&server, server.connect_string()).await, connect(&server).await);
        let writer = soon(RwLock::new(&client, "/rw").unwrap().write()).await.unwrap();
        let _reader = soon(writer.downgrade()).await.unwrap();
        let _permits = soon(Semaphore::new(&client, "/s", 100).unwrap().acquire_many(100)).await.unwrap();
        let (lock, semaphore) = (RwLock::new(&other, "/rw").unwrap(), Semaphore::new(&other, "/s", 100).unwrap());
        // More guards than one heartbeat has room for.
        until(async || {
            let (lock, permits) = (lock.participants().await.unwrap(), semaphore.participants().await.unwrap());
            assert_eq!((lock.len(), permits.len()), (1, 100));
            lock.iter().chain(&permits).all(|one| one.held_for().is_some())
        })
        .await;
    }

    async fn waiters_behind_a_recorded_hold_keep_waiting_after_one_read(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (lively(&server, server.connect_string()).await, connect(&server).await);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let proxy = server.proxy().await;
        let behind = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let waits = tokio::spawn(Mutex::new(&behind, "/lock").unwrap().acquire());
        let mutex = Mutex::new(&other, "/lock").unwrap();
        until(async || mutex.participants().await.unwrap().len() == 2).await;
        let count = |op| proxy.trace().iter().filter(|frame| frame.is_request(op)).count();
        until_recorded(&mutex).await;
        // The waiter watches its predecessor and its own node, and reads the predecessor again. A release
        // before that reply would make the waiter list the line.
        let answered = || proxy.trace().iter().filter(|frame| frame.is_reply(OpCode::GetData)).count();
        until(async || count(OpCode::SetWatches) == 1 && answered() >= 1).await;
        assert_eq!(count(OpCode::GetChildren2), 1);
        soon(guard.release()).await.unwrap();
        let guard = soon(waits).await.unwrap().unwrap();
        soon(guard.verify()).await.unwrap();
        assert_eq!(count(OpCode::GetChildren2), 1, "the line was listed again before the grant");
    }

    async fn a_record_whose_reply_is_lost_affects_no_guard(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = lively(&server, proxy.connect_string()).await;
        let lost = proxy.add(Rule::on(OpCode::Multi).when(records).reset_after());
        let guards = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
        let guards = [soon(guards[0].acquire()).await.unwrap(), soon(guards[1].acquire()).await.unwrap()];
        for path in ["/a", "/b"] {
            until_recorded(&Mutex::new(&other, path).unwrap()).await;
        }
        until(async || lost.has_fired()).await;
        heartbeats(&proxy).await;
        for guard in &guards {
            assert!(guard.is_held());
            soon(guard.verify()).await.unwrap();
            assert_eq!(soon(other.get(&guard.path())).await.unwrap().stat.version, 1);
        }
    }

    async fn a_short_hold_records_no_start_time(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let multis = || server.front().trace().iter().filter(|frame| frame.is_request(OpCode::Multi)).count();
        let before = multis();
        for _ in 0..50 {
            soon(mutex.acquire()).await.unwrap().release().await.unwrap();
        }
        assert_eq!(multis(), before);
    }
}
