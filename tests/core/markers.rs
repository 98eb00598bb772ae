//! The markers by which exact writes learn their outcome.

use crate::builder;
use docent::CreateMode;
use docent_battery::Backend;
use docent_tests::{soon, while_progressing};
use futures_util::future::join_all;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit of markers per session. More would make the session's end one large transaction, which servers
/// cannot read above some size.
const MOST: usize = 64;

#[tokio::test(start_paused = true)]
async fn a_burst_of_exact_writes_does_not_take_a_marker_each() {
    const WRITES: usize = 2_000;
    let server = Backend::Memory.start().await;
    let embedded = server.as_embedded().unwrap();
    // Bypasses the proxies, which record every frame.
    let client = builder(&server, embedded.connect_string()).connect().await.unwrap();
    client.create("/burst", "", CreateMode::Persistent).await.unwrap();
    let markers = || {
        embedded
            .nodes()
            .iter()
            .filter(|path| path.split('/').skip_while(|name| *name != "_docent").count() == 3)
            .count()
    };
    let (done, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let write = async |number: usize| {
        let path = format!("/burst/{number}");
        client.transaction().create(&path, "", CreateMode::Persistent).commit_exactly().await.unwrap();
        if done.fetch_add(1, Ordering::Relaxed).is_multiple_of(MOST) {
            most.fetch_max(markers(), Ordering::Relaxed);
        }
    };
    while_progressing(|| done.load(Ordering::Relaxed), join_all((0..WRITES).map(write))).await;
    assert!(most.into_inner() <= MOST, "too many markers during writes");
    assert!(markers() <= MOST, "{} markers are left", markers());
    assert_eq!(soon(client.children("/burst")).await.unwrap().names.len(), WRITES);
    soon(client.close()).await;
    assert_eq!(markers(), 0);
}
