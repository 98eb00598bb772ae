//! A server that stops and restarts.

use crate::{both_backends, connect};
use docent::Mutex;
use docent_battery::Backend;
use docent_tests::{soon, while_progressing};
use futures_util::future::{join_all, try_join_all};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

both_backends! {
    async fn contenders_continue_after_a_server_restart(backend: Backend) {
        let server = backend.start_own().await;
        let clients = join_all((0..8).map(|_| connect(&server))).await;
        let grants = Arc::new(AtomicUsize::new(0));
        let busy = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicUsize::new(0));
        let work = clients.iter().map(|client| {
            let mutex = Mutex::new(client, "/lock").unwrap();
            let (grants, busy, stop) = (grants.clone(), busy.clone(), stop.clone());
            tokio::spawn(async move {
                let mut own = 0;
                // Every task gets the lock after the restart before any task stops.
                while stop.load(Ordering::SeqCst) == 0 || own < 5 {
                    let guard = mutex.acquire().await.unwrap();
                    assert_eq!(busy.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                    docent_tests::pause().await;
                    let held = guard.is_held();
                    busy.fetch_sub(1, Ordering::SeqCst);
                    if held {
                        grants.fetch_add(1, Ordering::SeqCst);
                        own += usize::from(stop.load(Ordering::SeqCst) != 0);
                    }
                    // The lock may be lost while the server is down. Then the release reports it.
                    let _ = guard.release().await;
                }
            })
        });
        let work = try_join_all(work.collect::<Vec<_>>());
        soon(async {
            while grants.load(Ordering::SeqCst) < 50 {
                docent_tests::pause().await;
            }
        })
        .await;
        server.stop().await;
        server.start_again().await;
        stop.store(1, Ordering::SeqCst);
        while_progressing(|| grants.load(Ordering::SeqCst), work).await.unwrap();
    }
}
