//! More watches than fit into one request that re-registers them.

use crate::watches::data;
use docent::{Client, CreateMode};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon};
use futures_util::future::join_all;

both_backends! {
    async fn thousands_of_watches_survive_a_reconnect_and_fire_for_the_changes_of_the_gap(backend: Backend) {
        const WATCHES: usize = 4_000;
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let path = |n: usize| format!("/{:0>width$}", n, width = 99);
        let create = async |client: &Client, n: usize| {
            client.create(&path(n), "1", CreateMode::Persistent).await.unwrap();
        };
        join_all((0..WATCHES).map(|n| create(&other, n))).await;
        let mut streams: Vec<_> = (0..WATCHES).map(|n| client.watch_data(&path(n)).unwrap()).collect();
        for values in soon(join_all(streams.iter_mut().map(data))).await {
            assert_eq!(values.as_deref(), Some("1"));
        }
        let session = client.session_id();
        proxy.cut().await;
        join_all((0..WATCHES).step_by(2).map(|n| {
            let (other, path) = (&other, path(n));
            async move { other.set(&path, "2", None).await.unwrap() }
        }))
        .await;
        proxy.heal().await.unwrap();
        let changed = streams.iter_mut().step_by(2).map(data);
        assert!(soon(join_all(changed)).await.iter().all(|value| value.as_deref() == Some("2")));
        // The other watches are still armed.
        join_all((1..WATCHES).step_by(2).map(|n| {
            let (other, path) = (&other, path(n));
            async move { other.set(&path, "3", None).await.unwrap() }
        }))
        .await;
        let unchanged = streams.iter_mut().skip(1).step_by(2).map(data);
        assert!(soon(join_all(unchanged)).await.iter().all(|value| value.as_deref() == Some("3")));
        assert_eq!(client.session_id(), session, "the session must be kept");
    }
}
