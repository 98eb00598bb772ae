//! A shutdown while no server is reachable.

use bytes::{Buf, Bytes, BytesMut};
use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode, Instance, Mutex, Queue, Registry};
use docent_battery::{Backend, Direction, Flow, Rule, both_backends};
use docent_proto::{Code, ConnectResponse, Frames, OpCode, Record, ReplyHeader, write_frame};
use docent_tests::{PATIENCE, SHORT_SESSION, builder, connect, own_nodes, soon, until};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

both_backends! {
    async fn a_shutdown_in_an_outage_ends_by_its_deadline_and_names_all_remaining_nodes(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let (held, released) = (Mutex::new(&client, "/held").unwrap(), Mutex::new(&client, "/gone").unwrap());
        let guard = soon(held.acquire()).await.unwrap();
        soon(soon(released.acquire()).await.unwrap().release()).await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let within = Duration::from_secs(2);
        let report = soon(client.shutdown(within)).await;
        assert!(report.took < within + Duration::from_secs(1), "{report}");
        let left: Vec<_> = report.left.iter().map(|node| (node.kind, node.path.as_str())).collect();
        let path = guard.path();
        assert_eq!(left, [("mutex", path.as_str()), ("node", "/mine")], "{report}");
        assert!(report.left.iter().all(|node| Some(node.session_id) == client.session_id()));
        let text = report.to_string();
        assert!(text.contains(&path) && text.contains("mutex") && report.session_timeout.is_some(), "{text}");
    }

    async fn a_shutdown_in_an_outage_waits_for_holders_and_not_for_servers(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let settings = builder(&server, proxy.connect_string()).session_timeout(PATIENCE * 2);
        let client = settings.connect().await.unwrap();
        let registry = Registry::builder(&client, "/services").drain(PATIENCE).build().unwrap();
        let _web = soon(registry.register(Instance::new("web", "h", 1).id("a"))).await.unwrap();
        let jobs = Queue::<u64>::new(&client, "/jobs").unwrap();
        soon(jobs.put(&1)).await.unwrap();
        let (job, guard) = (soon(jobs.take()).await.unwrap(), soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap());
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let began = Instant::now();
        let shutdown = tokio::spawn(client.shutdown(PATIENCE * 10));
        soon(job.revoked()).await;
        // The job's acknowledgement cannot arrive.
        let ack = tokio::spawn(job.ack());
        soon(guard.revoked()).await;
        drop(guard);
        let report = soon(shutdown).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(4), "{report}");
        assert!(report.held_on.is_empty() && report.left.len() == 3, "{report}");
        assert!(soon(ack).await.unwrap().is_err());
    }

    async fn nodes_of_a_session_that_was_given_up_are_named(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        let session = client.session_id();
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Lost)).await;
        let report = soon(client.shutdown(Duration::from_secs(1))).await;
        let left: Vec<_> = report.left.iter().map(|node| (node.path.as_str(), Some(node.session_id))).collect();
        assert_eq!(left, [("/mine", session)], "{report}");
        // The next session was never opened.
        assert_eq!(report.session_timeout, Some(SHORT_SESSION));
    }

    async fn replaced_nodes_of_a_session_that_was_given_up_are_not_named(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let node = KeptNode::new(&client, "/kept", "1").unwrap();
        soon(node.present()).await.unwrap();
        until(async || own_nodes(&other).await.len() == 2).await;
        let session = client.session_id().unwrap();
        proxy.cut().await;
        let _alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        // While a guard of the lost session exists, the client does not end that session. At the shutdown the
        // client cannot end it.
        until(async || other.get("/kept").await.unwrap().stat.owner == client.session_id()).await;
        for _ in 0..100 {
            proxy.add(Rule::on(OpCode::CloseSession).reset_before());
        }
        let report = soon(client.shutdown(Duration::from_secs(3))).await;
        let left: Vec<_> = report.left.iter().map(|node| (&node.path, node.session_id)).collect();
        assert_eq!(left, [(&guard.path(), session)], "{report}");
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/kept").await.unwrap(), None);
    }

    async fn a_shutdown_waits_for_servers_that_recover_in_time(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let shutdown = tokio::spawn(client.shutdown(Duration::from_secs(20)));
        proxy.heal().await.unwrap();
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean(), "{report}");
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/mine").await.unwrap(), None);
    }

    async fn a_close_whose_link_breaks_before_its_reply_is_retried_until_the_deadline(backend: Backend) {
        for applied in [false, true] {
            let server = backend.start().await;
            let (other, proxy) = (connect(&server).await, server.proxy().await);
            let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            let lock = Mutex::new(&client, "/lock").unwrap();
            let held = soon(lock.acquire()).await.unwrap();
            let next = tokio::spawn(Mutex::new(&other, "/lock").unwrap().acquire());
            until(async || lock.participants().await.unwrap().len() == 2).await;
            // A restarted server behaves in this way: it accepts the request without a reply, then its links
            // break, and new links work.
            let close = Rule::on(OpCode::CloseSession);
            let written = proxy.add(if applied { close.swallow_reply() } else { close.hold() });
            let shutdown = tokio::spawn(client.shutdown(Duration::from_secs(12)));
            soon(written.fired()).await;
            drop(held);
            proxy.set_flow(Direction::ToServer, Flow::Pass);
            proxy.reset().await;
            let report = soon(shutdown).await.unwrap();
            other.sync("/").await.unwrap();
            let names = other.children("/lock").await.unwrap().names;
            assert_eq!(names.len(), 1, "only the waiter's ticket is left: {report}");
            assert!(report.left.is_empty(), "{report}");
            let _next = soon(next).await.unwrap().unwrap();
        }
    }

    async fn a_shutdown_waits_for_the_end_of_a_session_that_was_given_up_before(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        let session = client.session_id().unwrap();
        proxy.cut().await;
        // The servers keep the session alive.
        let _alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        assert_eq!(client.health().lingering_nodes, ["/mine"]);
        proxy.heal().await.unwrap();
        soon(client.state().reached(ConnectionState::Connected)).await;
        let report = soon(client.shutdown(Duration::from_secs(20))).await;
        assert!(report.is_clean(), "{report}");
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/mine").await.unwrap(), None);
    }

    async fn a_close_waits_for_the_end_of_a_session_that_was_given_up_before(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        let session = client.session_id().unwrap();
        proxy.cut().await;
        let _alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        soon(client.state().reached(ConnectionState::Connected)).await;
        soon(client.close()).await;
        other.sync("/").await.unwrap();
        assert_eq!((other.exists("/mine").await.unwrap(), client.health().lingering_nodes.len()), (None, 0));
    }

    async fn a_close_in_an_outage_does_not_wait_for_servers(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let settings = builder(&server, proxy.connect_string()).session_timeout(PATIENCE * 2);
        let client = settings.operation_timeout(PATIENCE).connect().await.unwrap();
        let (held, dropped) = (Mutex::new(&client, "/held").unwrap(), Mutex::new(&client, "/gone").unwrap());
        let (guard, dropped) = (soon(held.acquire()).await.unwrap(), soon(dropped.acquire()).await.unwrap());
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        drop(dropped);
        let began = Instant::now();
        soon(client.close()).await;
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert!(guard.check().is_err());
    }

    async fn a_client_that_never_connected_closes_immediately(_backend: Backend) {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let _waiting = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        let began = Instant::now();
        soon(client.close()).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    async fn a_client_that_never_connected_leaves_nothing(_backend: Backend) {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let _guard = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        let report = soon(client.shutdown(Duration::from_millis(500))).await;
        assert!(report.is_clean() && report.took < Duration::from_secs(2), "{report}");
    }
}

/// Serves one link: opens a session, and answers the next request like a server that no longer knows it.
async fn forget_a_session(listener: TcpListener) {
    let (mut link, _) = listener.accept().await.unwrap();
    let (timeout_ms, session_id, password) = (10_000, 1, Bytes::from_static(&[7; 16]));
    let attached = ConnectResponse { timeout_ms, session_id, password, read_only: Some(false) };
    let (mut first, mut received, frames) = (Some(attached), BytesMut::new(), Frames::new(1 << 20));
    while link.read_buf(&mut received).await.is_ok_and(|read| read > 0) {
        while let Some(mut frame) = frames.next(&mut received).unwrap() {
            let mut out = Vec::new();
            write_frame(&mut out, |out| match first.take() {
                Some(attached) => attached.write(out),
                None => {
                    let code = Code::SESSION_EXPIRED;
                    ReplyHeader { xid: frame.get_i32(), zxid: 1, code }.write(out);
                }
            });
            link.write_all(&out).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_close_in_an_outage_after_an_expired_session_does_not_wait_for_servers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(forget_a_session(listener));
    let settings = Client::builder(address.to_string()).operation_timeout(PATIENCE);
    let client = soon(settings.connect()).await.unwrap();
    let reader = client.clone();
    let _waiting = tokio::spawn(async move { reader.get("/a").await });
    soon(client.state().reached(ConnectionState::Lost)).await;
    soon(server).await.unwrap();
    let began = Instant::now();
    soon(client.close()).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}
