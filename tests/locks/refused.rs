//! Releases that the servers refuse.

use crate::{builder, connect};
use docent::node::{Acl, Permissions};
use docent::{Client, ConnectionState, ErrorKind, LostReason, Mutex};
use docent_battery::{Backend, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

/// Forbids deletes, so tickets remain in the line of `/lock` until their session ends.
async fn deny_deletes(other: &Client) {
    let rest = Permissions::READ | Permissions::WRITE | Permissions::CREATE | Permissions::ADMIN;
    other.set_acl("/lock", [Acl::new(rest, "world", "anyone")], None).await.unwrap();
}

both_backends! {
    async fn a_refused_release_is_reported_and_not_retried_forever(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let (other, path) = (connect(&server).await, guard.path());
        deny_deletes(&other).await;
        assert_eq!(soon(guard.release()).await.unwrap_err().kind(), ErrorKind::NoAuth);
        // The same in the background.
        let waiting = tokio::spawn(mutex.acquire());
        crate::order::until_waiting(&mutex, 2).await;
        waiting.abort();
        let deletes = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::Delete)).count();
        proxy.until(|trace| deletes(trace) == 2).await;
        // A client completes pending deletes before it is closed.
        let before = client.state().current();
        soon(client.sync("/")).await.unwrap();
        assert_eq!(client.state().current(), before, "the session must continue");
        assert!(other.exists(&path).await.unwrap().is_some());
        soon(client.close()).await;
        assert_eq!(deletes(&proxy.trace()), 2);
        assert_eq!(soon(Mutex::new(&other, "/lock").unwrap().participants()).await.unwrap(), []);
    }

    async fn a_refused_release_ends_the_session_if_so_configured(backend: Backend) {
        let server = backend.start().await;
        let settings = builder(&server, server.connect_string()).end_session_on_refused_delete();
        let client = settings.connect().await.unwrap();
        let (other, mutex) = (connect(&server).await, Mutex::new(&client, "/lock").unwrap());
        let guard = soon(mutex.acquire()).await.unwrap();
        let kept = soon(Mutex::new(&client, "/other").unwrap().acquire()).await.unwrap();
        let waiting = tokio::spawn(Mutex::new(&other, "/lock").unwrap().acquire());
        crate::order::until_waiting(&mutex, 2).await;
        deny_deletes(&other).await;
        assert_eq!(soon(guard.release()).await.unwrap_err().kind(), ErrorKind::NoAuth);
        assert_eq!(soon(kept.lost()).await, LostReason::SessionAbandoned);
        let mut state = client.state();
        let next = state.wait_for(|state| state.generation == 2 && *state == ConnectionState::Connected);
        assert_eq!(soon(next).await.unwrap().generation, 2);
        assert!(!waiting.is_finished(), "the other guard's work may not have stopped");
        drop(kept);
        let next_guard = soon(waiting).await.unwrap().unwrap();
        // The delete is also refused in the next session, which has no node left.
        soon(client.sync("/")).await.unwrap();
        assert_eq!(client.state().current().generation, 2);
        drop(next_guard);
    }
}
