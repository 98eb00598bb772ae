//! The server goes away and comes back.

use crate::{both_backends, connect};
use docent::Mutex;
use docent_battery::Backend;
use docent_tests::{as_it_goes_on, soon};
use futures_util::future::{join_all, try_join_all};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

both_backends! {
    async fn contenders_go_on_after_the_server_was_restarted(backend: Backend) {
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
                // Everybody gets the lock after the restart before anybody stops.
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
                    // It may be lost while the server is away; then it says so.
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
        as_it_goes_on(|| grants.load(Ordering::SeqCst), work).await.unwrap();
    }
}
