//! Closing ends everything: futures, streams, tasks, the session.

use crate::{both_backends, builder, connect};
use docent::locks::AcquireError;
use docent::{ConnectionState, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Direction};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, soon};
use futures_util::StreamExt;
use std::time::Duration;

both_backends! {
    async fn close_ends_pending_futures_and_the_session(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let other = connect(&server).await;
        client.create("/ephemeral", "", CreateMode::Ephemeral).await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let held = soon(mutex.acquire()).await.unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        let states = tokio::spawn(client.state().collect::<Vec<_>>());
        while mutex.participants().await.unwrap().len() < 2 {
            docent_tests::pause().await;
        }
        soon(client.close()).await;
        let AcquireError::Core(error) = soon(waiting).await.unwrap().unwrap_err() else {
            panic!("expected an error of the client");
        };
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(!held.is_held());
        assert_eq!(soon(states).await.unwrap().last().unwrap().state, ConnectionState::Closed);
        assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::Closed);
        let mut late = client.state();
        assert_eq!(soon(late.changed()).await.unwrap().state, ConnectionState::Closed);
        assert!(soon(late.changed()).await.is_none() && soon(late.clone().changed()).await.is_none());
        assert_eq!(soon(held.release()).await.unwrap_err().kind(), ErrorKind::Lost(docent::LostReason::Closed));
        // The close ended the session and deleted its nodes.
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/ephemeral").await.unwrap(), None);
        assert_eq!(Mutex::new(&other, "/lock").unwrap().participants().await.unwrap(), []);
        soon(client.close()).await;
    }

    async fn close_ends_a_waiter_whose_watch_is_in_flight(backend: Backend) {
        let server = backend.start().await;
        let (holder, proxy) = (connect(&server).await, server.proxy().await);
        let _held = soon(Mutex::new(&holder, "/lock").unwrap().acquire()).await.unwrap();
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        proxy.set_delay(Direction::ToClient, Duration::from_millis(100));
        let waiting = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        proxy.until(|trace| trace.iter().any(|frame| frame.is_request(OpCode::GetData))).await;
        soon(client.close()).await;
        assert!(soon(waiting).await.unwrap().is_err());
    }

    async fn close_ends_a_guard_before_another_client_gets_its_lock(backend: Backend) {
        let server = backend.start().await;
        let (next, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let held = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&next, "/lock").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        while mutex.participants().await.unwrap().len() < 2 {
            docent_tests::pause().await;
        }
        // The session ends at the server long before its client can know.
        proxy.set_delay(Direction::ToClient, Duration::from_millis(300));
        let closing = tokio::spawn(async move { client.close().await });
        let _granted = soon(waiting).await.unwrap().unwrap();
        assert!(!held.is_held());
        soon(closing).await.unwrap();
    }

    async fn calls_on_a_client_that_could_not_close_in_time_end_immediately(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string())
            .operation_timeout(Duration::from_millis(300)).build().unwrap();
        let patient = client.with_operation_timeout(PATIENCE * 2);
        let first = soon(Mutex::new(&patient, "/a").unwrap().acquire()).await.unwrap();
        let second = soon(Mutex::new(&patient, "/b").unwrap().acquire()).await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let releasing = tokio::spawn(first.release());
        docent_tests::pause().await;
        soon(client.close()).await;
        assert!(soon(releasing).await.unwrap().is_err());
        assert!(soon(second.release()).await.is_err());
    }

    async fn close_without_a_link_ends_pending_futures_by_the_operation_timeout(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).operation_timeout(Duration::from_secs(1)).build().unwrap();
        let patient = client.with_operation_timeout(PATIENCE);
        patient.get("/").await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let read = tokio::spawn(async move { patient.get("/").await });
        docent_tests::pause().await;
        soon(client.close()).await;
        assert_eq!(soon(read).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn dropping_the_last_clone_ends_the_session(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let client = connect(&server).await;
        client.create("/ephemeral", "", CreateMode::Ephemeral).await.unwrap();
        let clone = client.clone();
        drop(client);
        clone.get("/ephemeral").await.unwrap();
        drop(clone);
        soon(async { while other.exists("/ephemeral").await.unwrap().is_some() {} }).await;
    }
}

#[test]
fn close_leaves_no_task() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Backend::Embedded.start().await;
        let before = runtime.metrics().num_alive_tasks();
        let client =
            builder(&server, server.as_embedded().unwrap().connect_string()).connect().await.unwrap();
        let _ = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        soon(client.close()).await;
        // The server's tasks for the link end when they see that it is closed.
        soon(async {
            while runtime.metrics().num_alive_tasks() > before {
                docent_tests::pause().await;
            }
        })
        .await;
        assert_eq!(server.as_embedded().unwrap().session_count(), 0);
    });
}

#[test]
fn everything_can_be_dropped_after_its_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, client, guard, waiting, state) = runtime.block_on(async {
        let server = Backend::Embedded.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = mutex.acquire().await.unwrap();
        let mut waiting = Box::pin(mutex.acquire());
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        (server, client.clone(), guard, waiting, client.state())
    });
    drop(server);
    drop(runtime);
    assert!(!state.current().eq(&ConnectionState::Connecting));
    drop((waiting, guard, state, client));
}
