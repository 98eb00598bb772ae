//! Many permits in one acquire: their cost, and limits that are too low for them.

use super::until_participants;
use crate::{builder, connect};
use docent::client::ParentKind;
use docent::locks::{AcquireError, SharedLimit};
use docent::{Client, CreateMode, Error, ErrorKind, Semaphore};
use docent_battery::{Backend, Rule, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::{soon, until};
use std::fmt::Debug;
use std::time::Duration;

const LONG_SESSION: Duration = Duration::from_secs(60);

/// Checks that an acquire failed with an error about its numbers.
fn is_invalid<T: Debug>(acquired: Result<T, AcquireError>, texts: &[&str]) {
    let Err(AcquireError::Core(error)) = acquired else { panic!("expected an error: {acquired:?}") };
    assert_message(&error, texts);
}

fn assert_message(error: &Error, texts: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let missing = texts.iter().find(|text| !error.to_string().contains(**text));
    assert!(missing.is_none(), "{missing:?} in {error}");
}

/// Number of requests of the kind `op`.
fn count(trace: &[Traced], op: OpCode) -> usize {
    trace.iter().filter(|frame| frame.is_request(op)).count()
}

/// Names of the tickets for permits.
async fn leases(client: &Client) -> usize {
    match client.children("/semaphore/leases").await {
        Ok(children) => children.names.len(),
        Err(_) => 0,
    }
}

both_backends! {
    async fn many_permits_are_taken_in_a_few_requests(backend: Backend) {
        const PERMITS: usize = 2_500;
        let server = backend.start().await;
        // A slow server needs a while to delete that many nodes. Containers would be deleted once they are
        // empty, and created again.
        let settings = builder(&server, server.connect_string()).session_timeout(LONG_SESSION);
        let client = settings.parents(ParentKind::Persistent).connect().await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", 5_000).unwrap();
        drop(soon(semaphore.acquire()).await.unwrap());
        until_participants(&semaphore, 0).await;
        let before = server.front().trace().len();
        let permit = soon(semaphore.acquire_many(PERMITS as u32)).await.unwrap();
        let trace = server.front().trace()[before..].to_vec();
        assert_eq!(permit.permits(), PERMITS);
        assert!(permit.is_held());
        let turns = trace.iter().filter(|frame| {
            frame.is_request(OpCode::Create2) && frame.path.as_ref().is_some_and(|path| path.contains("/locks/"))
        });
        assert_eq!(turns.count(), 1);
        assert!(count(&trace, OpCode::Multi) <= 8, "{}", count(&trace, OpCode::Multi));
        assert!(count(&trace, OpCode::GetChildren2) <= 2);
        // A holder watches each of its nodes, and no caller awaits those replies.
        assert!(trace.iter().filter(|frame| frame.is_request(OpCode::GetData)).count() <= PERMITS + 3);
        let bytes: usize = trace.iter().map(|frame| frame.length).sum();
        assert!(bytes < PERMITS * 1_500, "{bytes} bytes");
        assert_eq!(leases(&client).await, PERMITS);
        soon(permit.release()).await.unwrap();
        assert_eq!(leases(&client).await, 0);
    }

    async fn more_permits_than_the_shared_limit_are_refused_before_any_node_is_created(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let limit = SharedLimit::new(&client, "/limit", 4).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        for permits in [5, 500, u32::MAX] {
            let number = permits.to_string();
            is_invalid(soon(semaphore.acquire_many(permits)).await, &[&number, "at most the semaphore's 4", "/limit"]);
            is_invalid(soon(semaphore.try_acquire_many(permits)).await, &[&number, "at most the semaphore's 4"]);
        }
        assert!(client.exists("/semaphore").await.unwrap().is_none(), "a node was created");
    }

    async fn a_waiter_that_a_lowered_limit_cannot_satisfy_fails_and_starves_no_other(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let limit = SharedLimit::new(&client, "/limit", 4).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        let peer = Semaphore::with_limit(&other, "/semaphore", &limit).unwrap();
        let one = soon(semaphore.acquire()).await.unwrap();
        // The first waiter wants all four permits. Behind it, one waiter wants three, and one wants one.
        let all = tokio::spawn(semaphore.acquire_many(4));
        until(async || leases(&client).await == 5).await;
        let three = tokio::spawn(peer.acquire_many(3));
        until_participants(&semaphore, 6).await;
        let last = tokio::spawn(peer.acquire());
        until_participants(&semaphore, 7).await;
        soon(limit.set(2)).await.unwrap();
        is_invalid(soon(all).await.unwrap(), &["permits 4", "the semaphore's 2", "/limit"]);
        is_invalid(soon(three).await.unwrap(), &["permits 3", "the semaphore's 2", "/limit"]);
        let last = soon(last).await.unwrap().unwrap();
        assert!(one.is_held() && last.is_held());
        drop((one, last));
        until_participants(&semaphore, 0).await;
    }

    async fn with_a_limit_of_zero_all_callers_wait_and_create_no_permits(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let limit = SharedLimit::new(&client, "/limit", 0).unwrap();
        let semaphore = Semaphore::with_limit(&client, "/semaphore", &limit).unwrap();
        let waiting = tokio::spawn(semaphore.acquire_many(300));
        until_participants(&semaphore, 1).await;
        for _ in 0..5 {
            client.sync("/").await.unwrap();
        }
        assert_eq!(leases(&client).await, 0);
        soon(limit.set(299)).await.unwrap();
        is_invalid(soon(waiting).await.unwrap(), &["permits 300", "the semaphore's 299"]);
        soon(limit.set(0)).await.unwrap();
        let waiting = tokio::spawn(semaphore.acquire_many(300));
        until_participants(&semaphore, 1).await;
        soon(limit.set(300)).await.unwrap();
        assert_eq!(soon(waiting).await.unwrap().unwrap().permits(), 300);
    }

    async fn a_fixed_limit_is_stored_in_the_node_and_another_one_is_an_error_that_names_both(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let four = Semaphore::new(&client, "/semaphore", 4).unwrap();
        let five = Semaphore::new(&other, "/semaphore", 5).unwrap();
        let held = soon(four.acquire()).await.unwrap();
        assert_eq!(client.get("/semaphore").await.unwrap().data, "4", "the limit must be stored as in kazoo");
        for _ in 0..2 {
            is_invalid(soon(five.acquire()).await, &["5", "4", "\"/semaphore\""]);
            is_invalid(soon(five.try_acquire()).await, &["5", "4", "\"/semaphore\""]);
        }
        until_participants(&four, 1).await;
        assert_eq!(soon(five.reset()).await.unwrap_err().kind(), ErrorKind::NotEmpty);
        assert!(held.is_held());
        let unchecked = Semaphore::builder(&other, "/semaphore").permits(5).without_checks().build().unwrap();
        soon(soon(unchecked.acquire()).await.unwrap().release()).await.unwrap();
        soon(held.release()).await.unwrap();
        soon(five.reset()).await.unwrap();
        soon(five.reset()).await.unwrap();
        assert!(client.exists("/semaphore").await.unwrap().is_none());
        soon(soon(five.acquire_many(5)).await.unwrap().release()).await.unwrap();
        // A semaphore that was used before reads the node each time.
        is_invalid(soon(four.acquire()).await, &["4", "5", "\"/semaphore\""]);
    }

    async fn two_limits_set_concurrently_are_never_both_used(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for round in 0..10 {
            let path = format!("/semaphore-{round}");
            let one = Semaphore::new(&client, &path, 1).unwrap();
            let two = Semaphore::new(&other, &path, 2).unwrap();
            let (first, second) = soon(async { tokio::join!(one.acquire(), two.acquire()) }).await;
            let refused = [first.as_ref().err(), second.as_ref().err()].into_iter().flatten().count();
            assert_eq!(refused, 1, "{first:?}, {second:?}");
        }
    }

    async fn foreign_data_in_the_node_is_not_changed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/semaphore", "127.0.0.1", CreateMode::Persistent).await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", 4).unwrap();
        soon(soon(semaphore.acquire()).await.unwrap().release()).await.unwrap();
        assert_eq!(client.get("/semaphore").await.unwrap().data, "127.0.0.1");
        // Kazoo's limit applies, and a shared limit is not compared with anything.
        client.set("/semaphore", "3", None).await.unwrap();
        is_invalid(soon(semaphore.acquire()).await, &["4", "3"]);
        let limit = SharedLimit::new(&client, "/limit", 4).unwrap();
        let shared = Semaphore::builder(&client, "/semaphore").limit(&limit).build().unwrap();
        soon(soon(shared.acquire_many(4)).await.unwrap().release()).await.unwrap();
        let refused = Semaphore::builder(&client, "/semaphore").build().unwrap_err();
        assert_message(&refused, &["permits"]);
        assert_message(&Semaphore::builder(&client, "/semaphore").permits(0).build().unwrap_err(), &["permits 0 must be at least 1"]);
    }

    async fn many_permits_whose_reply_is_lost_are_found_or_undone(backend: Backend) {
        const PERMITS: u32 = 1_300;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let settings = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION);
        let client = settings.connect().await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", PERMITS).unwrap();
        drop(soon(semaphore.acquire()).await.unwrap());
        until_participants(&semaphore, 0).await;
        let lease_creates = || Rule::on(OpCode::Multi).path(|path| path.ends_with("-lease-"));
        for rule in [lease_creates().reset_before(), lease_creates().reset_after(), lease_creates().nth(2).reset_before(), lease_creates().nth(2).reset_after()] {
            let lost = proxy.add(rule);
            let permit = soon(semaphore.acquire_many(PERMITS)).await.unwrap();
            soon(lost.fired()).await;
            until(async || leases(&client).await == PERMITS as usize).await;
            assert!(permit.is_held());
            soon(permit.verify()).await.unwrap();
            soon(permit.release()).await.unwrap();
            until(async || leases(&client).await == 0).await;
        }
        // The acquire is dropped while the reply is in flight.
        let lost = proxy.add(lease_creates().nth(2).swallow_reply());
        let waiting = tokio::spawn(semaphore.acquire_many(PERMITS));
        soon(lost.fired()).await;
        waiting.abort();
        assert!(soon(waiting).await.unwrap_err().is_cancelled());
        proxy.reset().await;
        until(async || leases(&client).await == 0).await;
        until_participants(&semaphore, 0).await;
    }
}
