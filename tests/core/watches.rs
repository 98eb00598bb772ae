//! Streams of what nodes are.

use docent::{Client, CreateMode, WatchStream};
use docent_testkit::{Backend, both_backends};
use docent_tests::{builder, connect, soon};
use futures_util::StreamExt;
use futures_util::future::join_all;

async fn next<T>(stream: &mut WatchStream<T>) -> Option<T> {
    soon(stream.next()).await.expect("the client is open").expect("the node may be read")
}

async fn data(stream: &mut WatchStream<docent::Node>) -> Option<String> {
    next(stream).await.map(|node| String::from_utf8(node.data.into()).unwrap())
}

/// Reads on until the stream has come to `value`: what was in between may be coalesced.
async fn until(stream: &mut WatchStream<docent::Node>, value: Option<&str>) {
    while data(stream).await.as_deref() != value {}
}

both_backends! {
    async fn a_node_is_followed_from_before_its_creation_to_after_its_deletion(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await, None);
        client.create("/a", "1", CreateMode::Persistent).await.unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("1"));
        client.set("/a", "2", None).await.unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("2"));
        client.delete("/a", None).await.unwrap();
        assert_eq!(data(&mut stream).await, None);
        client.create("/a", "3", CreateMode::Persistent).await.unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("3"));
    }

    async fn children_and_existence_are_followed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut children = client.watch_children("/a").unwrap();
        let mut exists = client.watch_exists("/a").unwrap();
        assert_eq!(next(&mut children).await, None);
        assert_eq!(next(&mut exists).await, None);
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(next(&mut children).await.unwrap().names, [""; 0]);
        assert_eq!(next(&mut exists).await.unwrap().version, 0);
        client.create("/a/b", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(next(&mut children).await.unwrap().names, ["b"]);
        client.transaction().delete("/a/b", None).delete("/a", None).commit().await.unwrap();
        assert_eq!(next(&mut exists).await, None);
        while next(&mut children).await.is_some() {}
    }

    async fn a_change_made_while_the_link_was_down_is_seen(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("1"));
        proxy.cut().await;
        other.set("/a", "2", None).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("2"));
        // The same with a new node in the place of the old one.
        proxy.cut().await;
        other.delete("/a", None).await.unwrap();
        other.create("/a", "3", CreateMode::Persistent).await.unwrap();
        proxy.heal().await.unwrap();
        until(&mut stream, Some("3")).await;
    }

    async fn a_stream_goes_on_in_a_new_session_and_emits_only_changes(backend: Backend) {
        let server = backend.start().await;
        let (other, client) = (connect(&server).await, connect(&server).await);
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("1"));
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert!(futures_util::poll!(stream.next()).is_pending());
        client.get("/a").await.unwrap();
        other.set("/a", "2", None).await.unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("2"), "the unchanged value is no news");
    }

    async fn streams_end_on_close_and_dropped_ones_leave_no_watch(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut streams: Vec<_> = (0..3).map(|_| client.watch_data("/a").unwrap()).collect();
        for stream in &mut streams {
            assert_eq!(data(stream).await, None);
        }
        if let Some(embedded) = server.as_embedded() {
            assert_eq!(embedded.watch_count(), 1, "one watch at the server for all subscribers");
            streams.truncate(1);
            drop(streams.pop());
            client.sync("/").await.unwrap();
            assert_eq!(embedded.watch_count(), 0);
        }
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await, None);
        soon(client.close()).await;
        assert!(soon(stream.next()).await.is_none());
    }

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
        // The others are armed still.
        join_all((1..WATCHES).step_by(2).map(|n| {
            let (other, path) = (&other, path(n));
            async move { other.set(&path, "3", None).await.unwrap() }
        }))
        .await;
        let unchanged = streams.iter_mut().skip(1).step_by(2).map(data);
        assert!(soon(join_all(unchanged)).await.iter().all(|value| value.as_deref() == Some("3")));
        assert_eq!(client.session_id(), session, "the session was kept");
    }
}
