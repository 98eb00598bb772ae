//! Several locks as one: all or none.

use crate::contender::{Kind, Locks};
use crate::{builder, connect};
use docent::locks::{AcquireError, AnyLock, Owner};
use docent::{Client, CreateMode, ErrorKind, MultiLock, Mutex, RwLock};
use docent_battery::{Backend, Direction, Flow, Rule, battery, both_backends};
use docent_proto::{OpCode, Request};
use docent_tests::{in_time, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const LONG_SESSION: Duration = Duration::from_secs(60);

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_set_of_locks(backend: Backend) {
        battery::lost_reply(&Locks::of(Kind::Multi), &backend.start().await).await;
    }

    async fn a_set_of_locks_dropped_at_any_poll_leaves_nothing_and_frees_the_places(backend: Backend) {
        battery::cancel(&Locks::of(Kind::Multi), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_set_of_locks_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Locks::of(Kind::Multi), &backend.start().await).await;
    }

    async fn the_loss_of_a_set_of_locks_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&Locks::of(Kind::MultiRead), &backend.start().await).await;
    }

    async fn sets_that_overlap_and_were_given_in_any_order_do_not_deadlock(backend: Backend) {
        let server = backend.start().await;
        let busy = Arc::new(AtomicBool::new(false));
        let mut work = Vec::new();
        for names in [["/a", "/b", "/c"], ["/c", "/b", "/a"], ["/b", "/c", "/a"]] {
            let client = connect(&server).await;
            let busy = busy.clone();
            work.push(tokio::spawn(async move {
                let mutexes = names.map(|name| Mutex::new(&client, name).unwrap());
                let multi = MultiLock::new(&mutexes).unwrap();
                assert_eq!(multi.paths().collect::<Vec<_>>(), ["/a", "/b", "/c"]);
                for _ in 0..10 {
                    let guard = multi.acquire().await.unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst), "two hold the locks");
                    docent_tests::pause().await;
                    busy.store(false, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            }));
        }
        for task in work {
            soon(task).await.unwrap();
        }
    }

    async fn a_set_has_a_fence_for_each_path_that_is_not_acquired_for_reading(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, lock) = (Mutex::new(&client, "/m").unwrap(), RwLock::new(&client, "/w").unwrap());
        let other = RwLock::new(&client, "/r").unwrap();
        let multi = MultiLock::new([AnyLock::from(&mutex), lock.writing(), other.reading()]).unwrap();
        let first = soon(multi.acquire()).await.unwrap();
        assert_eq!(first.fences().map(|(path, _)| path).collect::<Vec<_>>(), ["/m", "/w"]);
        assert_eq!(first.fence("/r"), None);
        assert_eq!(first.fence("/nowhere"), None);
        let fences: Vec<_> = ["/m", "/w"].iter().map(|path| first.fence(path).unwrap()).collect();
        assert!(matches!(soon(mutex.try_acquire()).await, Err(AcquireError::Busy(_))));
        assert!(matches!(soon(lock.try_read()).await, Err(AcquireError::Busy(_))));
        let _ = soon(other.try_read()).await.unwrap();
        soon(first.release()).await.unwrap();
        let second = soon(multi.acquire()).await.unwrap();
        assert!(second.fence("/m").unwrap() > fences[0] && second.fence("/w").unwrap() > fences[1]);
    }

    async fn a_lock_that_cannot_be_acquired_leaves_no_lock_of_the_set_held(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutexes = ["/a", "/b", "/c"].map(|path| Mutex::new(&client, path).unwrap());
        let multi = MultiLock::new(&mutexes).unwrap();
        let taken = soon(Mutex::new(&other, "/c").unwrap().acquire()).await.unwrap();
        let timeout = Duration::from_millis(300);
        // One deadline applies to all locks together.
        in_time(timeout * 2, async || {
            let start = Instant::now();
            assert!(matches!(soon(multi.acquire_timeout(timeout)).await, Err(AcquireError::TimedOut(_))));
            assert!(start.elapsed() >= timeout);
            start.elapsed()
        })
        .await;
        crate::order::until_waiting(&mutexes[0], 0).await;
        crate::order::until_waiting(&mutexes[2], 1).await;
        assert!(matches!(soon(multi.try_acquire()).await, Err(AcquireError::Busy(_))));
        crate::order::until_waiting(&mutexes[1], 0).await;
        drop(taken);
        soon(soon(multi.acquire()).await.unwrap().release()).await.unwrap();
    }

    async fn a_sets_guard_is_lost_with_any_lock_and_its_release_frees_the_other_locks(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutexes = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
        let multi = MultiLock::new(&mutexes).unwrap();
        let guard = soon(multi.acquire()).await.unwrap();
        let token = guard.token();
        soon(guard.verify()).await.unwrap();
        other.delete(&guard.paths()[1], None).await.unwrap();
        soon(guard.lost()).await;
        assert!(!guard.is_held() && token.is_cancelled());
        assert!(soon(guard.run(std::future::pending::<()>())).await.is_err());
        assert!(soon(guard.verify()).await.unwrap_err().is_lost());
        let error = soon(guard.release()).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        crate::order::until_waiting(&mutexes[0], 0).await;
    }

    async fn a_lock_that_is_lost_while_waiting_for_the_next_is_acquired_again(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutexes = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
        let taken = soon(Mutex::new(&other, "/b").unwrap().acquire()).await.unwrap();
        let acquire = tokio::spawn(MultiLock::new(&mutexes).unwrap().acquire());
        crate::order::until_waiting(&mutexes[1], 2).await;
        let first = soon(mutexes[0].participants()).await.unwrap().remove(0);
        other.delete(&format!("/a/{}", first.name), None).await.unwrap();
        soon(async {
            while mutexes[0].participants().await.unwrap().iter().all(|one| one.fence <= first.fence) {
                docent_tests::pause().await;
            }
        }).await;
        soon(taken.release()).await.unwrap();
        let guard = soon(acquire).await.unwrap().unwrap();
        assert!(guard.is_held() && guard.fence("/a").unwrap() > first.fence);
    }

    async fn a_lock_lost_unnoticed_before_the_last_acquire_is_acquired_again(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let multi = MultiLock::new(["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap())).unwrap();
        other.create("/b", "", CreateMode::Persistent).await.unwrap();
        let first = Mutex::new(&other, "/a").unwrap();
        // When both replies have arrived, either of two tasks may run first.
        for _ in 0..10 {
            crate::order::until_waiting(&first, 0).await;
            let drawn = proxy.add(Rule::on(OpCode::Create2).path(|path| path.contains("/b/")).hold());
            let acquire = tokio::spawn(multi.acquire());
            soon(drawn.fired()).await;
            let deleted = soon(first.participants()).await.unwrap().remove(0);
            proxy.set_flow(Direction::ToClient, Flow::Hold);
            let created = creates(&other, "/b").await;
            other.delete(&format!("/a/{}", deleted.name), None).await.unwrap();
            proxy.set_flow(Direction::ToServer, Flow::Pass);
            soon(async { while creates(&other, "/b").await == created {} }).await;
            // The client learns of the deletion and of its place in the other line at the same time.
            proxy.set_flow(Direction::ToClient, Flow::Pass);
            let guard = soon(acquire).await.unwrap().unwrap();
            assert!(guard.fence("/a").unwrap() > deleted.fence, "the locks were never held at the same time");
            soon(guard.release()).await.unwrap();
        }
    }

    async fn a_set_is_verified_only_if_no_lock_was_lost_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        // Heartbeats are sent every ten seconds, so none is sent in between.
        let client = builder(&server, proxy.connect_string()).session_timeout(LONG_SESSION).connect().await.unwrap();
        let multi = MultiLock::new(["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap())).unwrap();
        let guard = soon(multi.acquire()).await.unwrap();
        let before = proxy.trace().len();
        let second = |request: &Request| match request {
            Request::Multi(ops) => ops.len() == 1 && ops[0].path().contains("/b/"),
            _ => false,
        };
        let request = proxy.add(Rule::on(OpCode::Multi).when(second).swallow_reply());
        let verify = async {
            let error = guard.verify().await.unwrap_err();
            assert!(error.is_lost(), "{error}");
        };
        let lose = async {
            request.fired().await;
            // The first node was found. Then it is deleted, and after that the second one is found.
            proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::Multi))).await;
            other.delete(&guard.paths()[0], None).await.unwrap();
            guard.lost().await;
            proxy.reset().await;
        };
        soon(futures_util::future::join(verify, lose)).await;
    }

    async fn a_hold_that_the_owner_already_has_is_shared_and_outlives_the_set(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutexes = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
        let owner = Owner::new();
        let alone = soon(mutexes[0].acquire_as(&owner)).await.unwrap();
        let guard = soon(MultiLock::new(&mutexes).unwrap().acquire_as(&owner)).await.unwrap();
        assert_eq!(guard.fence("/a"), Some(alone.fence()));
        soon(guard.release()).await.unwrap();
        assert!(alone.is_held());
        crate::order::until_waiting(&mutexes[0], 1).await;
        crate::order::until_waiting(&mutexes[1], 0).await;
    }

    async fn a_sets_transaction_is_applied_only_while_all_locks_are_held(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        client.create("/value", "old", CreateMode::Persistent).await.unwrap();
        let mutexes = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
        let guard = soon(MultiLock::new(&mutexes).unwrap().acquire()).await.unwrap();
        let results = soon(guard.transaction().set("/value", "new", None).commit_exactly()).await.unwrap();
        assert_eq!(results.unwrap().len(), 1);
        other.delete(&guard.paths()[1], None).await.unwrap();
        let error = soon(guard.transaction().set("/value", "wrong", None).commit()).await.unwrap_err();
        // The outcome is unknown only if the client learns of the deletion before the reply.
        let is_unknown = error.kind() == ErrorKind::OutcomeUnknown && !guard.is_held();
        assert!(error.is_lost() || is_unknown, "{error}");
        assert_eq!(client.get("/value").await.unwrap().data, "new");
    }

    async fn a_set_is_revoked_when_one_of_its_locks_is(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutexes = ["/a", "/b"].map(|path| Mutex::new(&client, path).unwrap());
        let guard = soon(MultiLock::new(&mutexes).unwrap().acquire()).await.unwrap();
        let holder = soon(mutexes[1].participants()).await.unwrap().remove(0);
        soon(mutexes[1].revoke(&holder)).await.unwrap();
        soon(guard.revoked()).await;
        assert!(guard.is_held());
    }

    async fn bad_sets_are_refused_with_value_and_rule(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (Mutex::new(&client, "/a").unwrap(), Mutex::new(&other, "/b").unwrap());
        let lock = RwLock::new(&client, "/a").unwrap();
        let none: [AnyLock; 0] = [];
        for (error, text) in [
            (MultiLock::new(none).unwrap_err(), "at least one lock must be given"),
            (MultiLock::new([&a, &a]).unwrap_err(), "lock \"/a\" must be given only once"),
            (MultiLock::new([lock.reading(), lock.writing()]).unwrap_err(), "lock \"/a\" must be given only once"),
            (MultiLock::new([&a, &b]).unwrap_err(), "lock \"/b\" must belong to the same client as \"/a\""),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}

/// Number of creates and deletes of children below `path`.
async fn creates(client: &Client, path: &str) -> i32 {
    soon(client.exists(path)).await.unwrap().unwrap().cversion
}
