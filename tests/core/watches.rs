//! Streams of the states of nodes.

use crate::{both_backends, builder, connect};
use docent::CreateMode;
use docent::cache::WatchStream;
use docent::node::Node;
use docent_battery::{Backend, Rule, ServerOptions, TestServer};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::StreamExt;

async fn next<T>(stream: &mut WatchStream<T>) -> Option<T> {
    soon(stream.next()).await.expect("the client is open").expect("the node must be readable")
}

pub(crate) async fn data(stream: &mut WatchStream<Node>) -> Option<String> {
    next(stream).await.map(|node| String::from_utf8(node.data.into()).unwrap())
}

/// Reads until the stream reaches `value`. States in between may be coalesced.
async fn until(stream: &mut WatchStream<Node>, value: Option<&str>) {
    while data(stream).await.as_deref() != value {}
}

/// Runs a transaction that causes two events for a client whose link is lost between them.
async fn sees_both_changes(server: &TestServer) {
    let (other, proxy) = (connect(server).await, server.proxy().await);
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    let paths = ["/a", "/b"];
    let mut streams = Vec::new();
    for path in paths {
        other.create(path, "1", CreateMode::Persistent).await.unwrap();
        let mut stream = client.watch_data(path).unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("1"));
        streams.push(stream);
    }
    let lost = proxy.reset_after_events(1);
    other.transaction().set(paths[0], "2", None).set(paths[1], "2", None).commit().await.unwrap();
    soon(lost.fired()).await;
    for stream in &mut streams {
        assert_eq!(data(stream).await.as_deref(), Some("2"));
    }
}

#[tokio::test]
async fn a_change_is_seen_though_the_first_event_of_its_transaction_had_its_number_as_in_3_9() {
    let options = ServerOptions::default().zxid_in_events(true);
    sees_both_changes(&Backend::Embedded.start_own_with(options).await).await;
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
        // The same with a new node that replaces the old one.
        proxy.cut().await;
        other.delete("/a", None).await.unwrap();
        other.create("/a", "3", CreateMode::Persistent).await.unwrap();
        proxy.heal().await.unwrap();
        until(&mut stream, Some("3")).await;
    }

    async fn a_change_is_seen_though_the_link_is_lost_after_the_first_event_of_its_transaction(backend: Backend) {
        sees_both_changes(&backend.start().await).await;
    }

    async fn a_stream_continues_in_a_new_session_and_emits_only_changes(backend: Backend) {
        let server = backend.start().await;
        let (other, client) = (connect(&server).await, connect(&server).await);
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("1"));
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert!(futures_util::poll!(stream.next()).is_pending());
        client.get("/a").await.unwrap();
        other.set("/a", "2", None).await.unwrap();
        assert_eq!(data(&mut stream).await.as_deref(), Some("2"), "an unchanged value must not be reported");
    }

    async fn a_node_deleted_before_it_could_be_read_is_reported_as_absent(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await, None);
        let read = proxy.add(Rule::on(OpCode::GetData).hold());
        let news = tokio::spawn(async move { data(&mut stream).await });
        other.create("/a", "1", CreateMode::Persistent).await.unwrap();
        soon(read.fired()).await;
        other.delete("/a", None).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(soon(news).await.unwrap(), None);
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
            soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
        }
        let mut stream = client.watch_data("/a").unwrap();
        assert_eq!(data(&mut stream).await, None);
        soon(client.close()).await;
        assert!(soon(stream.next()).await.is_none());
    }
}
