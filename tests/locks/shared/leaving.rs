//! Tasks that give up, try, or leave the line.

use super::{nodes, requests, shared, until_empty, waiters};
use crate::order::until_waiting;
use crate::{builder, connect};
use docent::Mutex;
use docent::locks::AcquireError;
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::{soon, while_progressing};
use futures_util::future::try_join_all;
use futures_util::poll;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

both_backends! {
    async fn a_draw_continues_after_its_runtime_was_shut_down(backend: Backend) {
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
        // The task already has its turn but does not know yet.
        drop(leaves);
        let guard = soon(next).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 2);
        drop(guard);
        until_empty(&client).await;
    }

    async fn the_next_task_continues_the_draw_of_a_cancelled_task(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 9);
        let first = waiters(&mutex, 1).await.remove(0);
        until_waiting(&Mutex::new(&other, "/lock").unwrap(), 2).await;
        let place = client.children("/lock").await.unwrap().names.into_iter().max_by_key(|name| {
            name.rsplit('-').next().map(str::to_owned)
        });
        let mut waiting = waiters(&mutex, 2).await;
        first.abort();
        let _ = first.await;
        drop(held);
        let guard = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(guard.path().ends_with(&place.unwrap()), "the place in the line must be kept");
        waiting.remove(0).abort();
        drop(guard);
        until_empty(&client).await;
    }

    async fn a_timed_out_task_that_continued_a_draw_reports_the_contenders_ahead(backend: Backend) {
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
        let Err(AcquireError::TimedOut(missed)) = soon(gives_up).await else { panic!("not refused") };
        assert_eq!(missed.ahead(), Some(1));
        drop(held);
        until_empty(&client).await;
    }

    async fn tasks_that_arrive_and_leave_at_any_moment_leave_no_node(backend: Backend) {
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
        let peer = Mutex::new(&other, "/lock").unwrap();
        let peer_task = tokio::spawn(async move {
            for _ in 0..5 {
                peer.acquire().await.unwrap().release().await.unwrap();
            }
        });
        while_progressing(|| done.load(Ordering::SeqCst), try_join_all(storm)).await.unwrap();
        soon(peer_task).await.unwrap();
        until_empty(&client).await;
        let _ = soon(mutex.try_acquire()).await.unwrap();
    }

    async fn a_failed_try_or_timeout_names_the_task_that_holds_the_lock(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).identity("host-7").connect().await.unwrap();
        let mutex = shared(&client, 9);
        let guard = soon(mutex.try_acquire()).await.unwrap();
        let before = requests(&server);
        let Err(AcquireError::Busy(missed)) = soon(mutex.try_acquire()).await else { panic!("not refused") };
        assert_eq!(missed.holder().unwrap().identity_text().as_deref(), Some("host-7"));
        assert_eq!((missed.ahead(), missed.path()), (Some(1), "/lock"));
        let Err(AcquireError::TimedOut(missed)) = soon(mutex.acquire_timeout(Duration::from_secs(1))).await else {
            panic!("not refused");
        };
        assert_eq!(missed.holder().unwrap().identity_text().as_deref(), Some("host-7"));
        assert!(missed.servers_reachable());
        let creates = server.front().trace().iter().filter(|frame| frame.is_request(OpCode::Create2)).count();
        assert!(creates <= 2 && requests(&server) - before <= 8, "the attempts must not write");
        drop(guard);
        drop(soon(mutex.try_acquire()).await.unwrap());
        // A task that only tries does not keep a waiting task from drawing.
        let held = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let (tried, waits) = (tokio::spawn(mutex.try_acquire()), tokio::spawn(mutex.acquire()));
        assert!(matches!(soon(tried).await.unwrap(), Err(AcquireError::Busy(_))));
        until_waiting(&Mutex::new(&client, "/lock").unwrap(), 2).await;
        drop(held);
        drop(soon(waits).await.unwrap().unwrap());
    }
}
