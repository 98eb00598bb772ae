//! Tasks that give up, try, or leave the line.

use super::{nodes, requests, shared, until_empty, waiters};
use crate::order::until_waiting;
use crate::{builder, connect};
use docent::Mutex;
use docent::locks::AcquireError;
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::{as_it_goes_on, soon};
use futures_util::future::try_join_all;
use futures_util::poll;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

both_backends! {
    async fn a_draw_goes_on_after_the_end_of_the_runtime_that_began_it(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 1_000);
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let first = std::thread::spawn({
            let acquire = mutex.acquire();
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let waiting = runtime.spawn(acquire);
                runtime.block_on(async { while end.try_recv().is_err() { tokio::time::sleep(Duration::from_millis(1)).await; } });
                assert!(!waiting.is_finished());
            }
        });
        docent_tests::until(async || nodes(&other).await == 2).await;
        let second = waiters(&mutex, 1).await.remove(0);
        ended.send(()).unwrap();
        tokio::task::spawn_blocking(|| first.join().unwrap()).await.unwrap();
        soon(held.release()).await.unwrap();
        let guard = soon(second).await.unwrap().unwrap();
        soon(guard.release()).await.unwrap();
        until_empty(&client).await;
    }

    async fn a_task_that_leaves_when_it_gets_its_turn_passes_it_on(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let mut leaves = Box::pin(mutex.acquire());
        assert!(poll!(leaves.as_mut()).is_pending());
        let next = waiters(&mutex, 1).await.remove(0);
        drop(guard);
        // It has its turn by now, and does not know.
        drop(leaves);
        let guard = soon(next).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 2);
        drop(guard);
        until_empty(&client).await;
    }

    async fn the_draw_of_a_task_that_leaves_goes_on_for_the_next(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 9);
        let first = waiters(&mutex, 1).await.remove(0);
        until_waiting(&Mutex::new(&other, "/lock").unwrap(), 2).await;
        let place = client.children("/lock").await.unwrap().names.into_iter().max_by_key(|name| {
            name.rsplit('-').next().map(str::to_owned)
        });
        let mut others = waiters(&mutex, 2).await;
        first.abort();
        let _ = first.await;
        drop(held);
        let guard = soon(others.remove(0)).await.unwrap().unwrap();
        assert!(guard.path().ends_with(&place.unwrap()), "the place in the line is kept");
        others.remove(0).abort();
        drop(guard);
        until_empty(&client).await;
    }

    async fn who_gives_up_the_draw_of_a_task_that_left_is_told_how_many_are_ahead(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 9);
        let first = waiters(&mutex, 1).await.remove(0);
        until_waiting(&Mutex::new(&other, "/lock").unwrap(), 2).await;
        let mut gives_up = Box::pin(mutex.acquire_timeout(Duration::from_secs(1)));
        assert!(poll!(gives_up.as_mut()).is_pending());
        first.abort();
        let _ = first.await;
        let Err(AcquireError::TimedOut(missed)) = soon(gives_up).await else { panic!("it is held") };
        assert_eq!(missed.ahead(), Some(1));
        drop(held);
        until_empty(&client).await;
    }

    async fn tasks_that_come_and_leave_at_any_moment_leave_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 4);
        let busy = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicUsize::new(0));
        let storm = (0..200_u32).map(|n| {
            let (mutex, busy, done) = (mutex.clone(), busy.clone(), done.clone());
            tokio::spawn(async move {
                let mut acquire = Box::pin(mutex.acquire());
                for _ in 0..n % 7 {
                    if let std::task::Poll::Ready(guard) = poll!(acquire.as_mut()) {
                        drop(guard);
                        return;
                    }
                    docent_tests::pause().await;
                }
                if n % 3 != 0 {
                    return;
                }
                let guard = acquire.await.unwrap();
                assert!(!busy.swap(true, Ordering::SeqCst), "two hold the lock");
                docent_tests::pause().await;
                busy.store(false, Ordering::SeqCst);
                drop(guard);
                done.fetch_add(1, Ordering::SeqCst);
            })
        });
        let storm: Vec<_> = storm.collect();
        let theirs = Mutex::new(&other, "/lock").unwrap();
        let beside = tokio::spawn(async move {
            for _ in 0..5 {
                theirs.acquire().await.unwrap().release().await.unwrap();
            }
        });
        as_it_goes_on(|| done.load(Ordering::SeqCst), try_join_all(storm)).await.unwrap();
        soon(beside).await.unwrap();
        until_empty(&client).await;
        let _ = soon(mutex.try_acquire()).await.unwrap();
    }

    async fn who_tries_or_gives_up_is_told_of_the_task_that_holds_it(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).identity("host-7").connect().await.unwrap();
        let mutex = shared(&client, 9);
        let guard = soon(mutex.try_acquire()).await.unwrap();
        let before = requests(&server);
        let Err(AcquireError::Busy(missed)) = soon(mutex.try_acquire()).await else { panic!("it is held") };
        assert_eq!(missed.holder().unwrap().identity_text().as_deref(), Some("host-7"));
        assert_eq!((missed.ahead(), missed.path()), (Some(1), "/lock"));
        let Err(AcquireError::TimedOut(missed)) = soon(mutex.acquire_timeout(Duration::from_secs(1))).await else {
            panic!("it is held");
        };
        assert_eq!(missed.holder().unwrap().identity_text().as_deref(), Some("host-7"));
        assert!(missed.servers_reachable());
        let creates = server.front().trace().iter().filter(|frame| frame.is_request(OpCode::Create2)).count();
        assert!(creates <= 2 && requests(&server) - before <= 8, "they ask, and write nothing");
        drop(guard);
        drop(soon(mutex.try_acquire()).await.unwrap());
        // Of two the one that only tries does not keep the other waiting.
        let held = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let (tried, waits) = (tokio::spawn(mutex.try_acquire()), tokio::spawn(mutex.acquire()));
        assert!(matches!(soon(tried).await.unwrap(), Err(AcquireError::Busy(_))));
        until_waiting(&Mutex::new(&client, "/lock").unwrap(), 2).await;
        drop(held);
        drop(soon(waits).await.unwrap().unwrap());
    }
}
