//! Writes of kept nodes that rely on the last read, while other clients change the nodes.

use crate::{builder, connect};
use docent::recipe::KeptNode;
use docent::{Client, CreateMode};
use docent_battery::{Armed, Backend, Direction, Flow, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{SESSION, soon, until};

/// Connects a client through its own proxy. The client keeps a node at `/a`, which is set `updates` times.
async fn kept(server: &TestServer, updates: usize) -> (Proxy, Client, KeptNode) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).session_timeout(SESSION).connect().await.unwrap();
    let node = KeptNode::new(&client, "/a", "0").unwrap();
    soon(node.present()).await.unwrap();
    for number in 1..=updates {
        node.set(number.to_string());
        soon(node.present()).await.unwrap();
    }
    (proxy, client, node)
}

/// Holds back the next write at `/a` until the proxy is healed.
fn held(proxy: &Proxy) -> Armed {
    proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).hold())
}

async fn until_data(other: &Client, data: &str) {
    until(async || other.get("/a").await.is_ok_and(|node| node.data == data)).await;
}

/// Deletes the kept node and creates the third party's node in its place.
async fn replaced_by(stranger: &Client) {
    soon(stranger.delete("/a", None)).await.unwrap();
    soon(stranger.create("/a", "theirs", CreateMode::Ephemeral)).await.unwrap();
}

both_backends! {
    async fn an_update_overtaken_by_another_client_is_applied_over_its_write(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (proxy, _client, node) = kept(&server, 0).await;
        let write = held(&proxy);
        node.set("mine");
        soon(write.fired()).await;
        soon(other.set("/a", "wrong", None)).await.unwrap();
        proxy.heal().await.unwrap();
        soon(node.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "mine");
        assert_eq!(other.get("/a").await.unwrap().stat.version, 2, "refused once, then applied");
        // The watch is set nevertheless.
        soon(other.set("/a", "wrong", None)).await.unwrap();
        until_data(&other, "mine").await;
    }

    async fn an_update_whose_reply_is_lost_is_applied_once(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        for (rule, version) in [
            (Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).reset_after(), 1),
            (Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).reset_before(), 1),
        ] {
            let (proxy, _client, node) = kept(&server, 0).await;
            let lost = proxy.add(rule);
            node.set("mine");
            soon(lost.fired()).await;
            soon(node.present()).await.unwrap();
            let found = other.get("/a").await.unwrap();
            assert_eq!((&found.data[..], found.stat.version), (&b"mine"[..], version));
            soon(other.set("/a", "wrong", None)).await.unwrap();
            until_data(&other, "mine").await;
            soon(node.remove()).await.unwrap();
        }
    }

    async fn an_update_after_a_lost_link_is_applied_and_watched(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (proxy, client, node) = kept(&server, 1).await;
        proxy.reset().await;
        soon(client.sync("/")).await.unwrap();
        for data in ["mine", "mine again"] {
            node.set(data);
            soon(node.present()).await.unwrap();
            assert_eq!(other.get("/a").await.unwrap().data, data);
        }
        soon(other.delete("/a", None)).await.unwrap();
        until_data(&other, "mine again").await;
    }

    async fn the_same_data_is_not_written_again(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (_proxy, _client, node) = kept(&server, 1).await;
        for _ in 0..3 {
            node.set("1");
            soon(node.present()).await.unwrap();
        }
        assert_eq!(other.get("/a").await.unwrap().stat.version, 1);
        soon(other.set("/a", "wrong", None)).await.unwrap();
        until_data(&other, "1").await;
    }

    async fn another_clients_node_survives_the_update_of_a_deleted_one(backend: Backend) {
        let server = backend.start().await;
        let (other, stranger) = (connect(&server).await, connect(&server).await);
        let (proxy, client, node) = kept(&server, 1).await;
        let write = held(&proxy);
        node.set("mine");
        soon(write.fired()).await;
        replaced_by(&stranger).await;
        proxy.heal().await.unwrap();
        soon(client.sync("/")).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
        soon(stranger.close()).await;
        until_data(&other, "mine").await;
    }

    async fn another_clients_node_survives_the_removal_of_a_deleted_one(backend: Backend) {
        let server = backend.start().await;
        let (other, stranger) = (connect(&server).await, connect(&server).await);
        let (proxy, _client, node) = kept(&server, 1).await;
        let write = held(&proxy);
        node.request_removal();
        soon(write.fired()).await;
        replaced_by(&stranger).await;
        proxy.heal().await.unwrap();
        soon(node.removed()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
    }

    async fn another_clients_first_node_survives_the_removal_of_one_whose_deletion_was_not_reported(backend: Backend) {
        let server = backend.start().await;
        let (other, stranger) = (connect(&server).await, connect(&server).await);
        // The kept node has version 0, as a new node has.
        let (proxy, _client, node) = kept(&server, 0).await;
        proxy.set_flow(Direction::ToClient, Flow::Hold);
        replaced_by(&stranger).await;
        let before = proxy.trace().len();
        node.request_removal();
        proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_request(OpCode::Exists) || frame.is_request(OpCode::Multi))).await;
        proxy.heal().await.unwrap();
        soon(node.removed()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
    }

    async fn a_removal_whose_reply_is_lost_is_applied_once(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        for lose in [|on: docent_battery::On| on.reset_after(), |on: docent_battery::On| on.reset_before()] {
            let (proxy, _client, node) = kept(&server, 1).await;
            let lost = proxy.add(lose(Rule::on(OpCode::Multi).path(|path| path.ends_with("/a"))));
            node.request_removal();
            soon(lost.fired()).await;
            soon(node.removed()).await.unwrap();
            assert_eq!(other.exists("/a").await.unwrap(), None);
        }
    }
}
