//! Number of attempts of a request, and limits on waiting requests.

use crate::{builder, connect};
use docent::client::RetryPolicy;
use docent::{CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, soon};
use futures_util::poll;
use std::time::Duration;

both_backends! {
    async fn a_request_is_sent_as_often_as_the_policy_allows(backend: Backend) {
        let server = backend.start().await;
        let again = |attempts| RetryPolicy::fixed(Duration::from_millis(10)).limit(attempts);
        for (policy, sent) in [(RetryPolicy::none(), 1), (again(2), 3)] {
            let proxy = server.proxy().await;
            let client = builder(&server, proxy.connect_string()).retry(policy).connect().await.unwrap();
            client.ensure_absent("/a").await.unwrap();
            client.create("/a", "", CreateMode::Persistent).await.unwrap();
            for _ in 0..sent {
                proxy.add(Rule::on(OpCode::GetData).reset_before());
            }
            let error = soon(client.get("/a")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
            assert!(error.is_retryable() && !error.may_have_applied());
            let reads = proxy.trace().into_iter().filter(|frame| frame.is_request(OpCode::GetData));
            assert_eq!(reads.count(), sent);
            soon(client.get("/a")).await.unwrap();
        }
    }

    async fn calls_beyond_the_limit_are_refused_but_cleanup_deletes_are_sent(backend: Backend) {
        const LIMIT: usize = 16;
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let settings = builder(&server, proxy.connect_string()).max_waiting(LIMIT).retry(RetryPolicy::none());
        let client = settings.connect().await.unwrap();
        client.create("/folder", "", CreateMode::Persistent).await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        proxy.cut().await;
        soon(client.state().reached(docent::ConnectionState::Suspended)).await;
        let paths: Vec<_> = (0..=LIMIT).map(|n| format!("/folder/{n}")).collect();
        let mut waiting = Vec::new();
        let error = loop {
            let mut create = Box::pin(client.create(&paths[waiting.len()], "", CreateMode::Persistent));
            match poll!(create.as_mut()) {
                std::task::Poll::Ready(result) => break result.unwrap_err(),
                std::task::Poll::Pending => waiting.push(create),
            }
        };
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        assert!(error.is_retryable() && !error.may_have_applied());
        // The requests that keep the guard wait as well.
        assert!((1..=LIMIT).contains(&waiting.len()), "{} requests wait", waiting.len());
        drop(guard);
        proxy.heal().await.unwrap();
        let accepted = waiting.len();
        for create in waiting {
            soon(create).await.unwrap();
        }
        assert_eq!(other.children("/folder").await.unwrap().names.len(), accepted);
        let theirs = Mutex::new(&other, "/lock").unwrap();
        soon(async { while !theirs.participants().await.unwrap().is_empty() {} }).await;
    }

    async fn a_free_lock_that_an_overloaded_client_could_not_request_is_not_reported_as_held(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).max_waiting(16).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        for _ in 0..3 {
            soon(soon(mutex.try_acquire()).await.unwrap().release()).await.unwrap();
            soon(soon(mutex.acquire_timeout(PATIENCE)).await.unwrap().release()).await.unwrap();
        }
        // The creates of the parents are sent together and leave no room in the queue for the ticket.
        let deep = Mutex::new(&client, &"/deep".repeat(20)).unwrap();
        let error = soon(deep.acquire_timeout(Duration::from_secs(4))).await.unwrap_err();
        assert!(error.not_acquired().unwrap().servers_reachable());
        assert!(error.to_string().ends_with(": not acquired in 4s: no ticket was taken in time"), "{error}");
    }
}
