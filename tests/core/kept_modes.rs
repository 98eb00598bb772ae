//! Kept nodes of all create modes.

use crate::{builder, connect};
use docent::client::ParentKind;
use docent::node::{KeptNode, KeptStatus};
use docent::{Client, CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, ServerOptions, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{child_count, soon, until};
use futures_util::StreamExt;
use std::time::Duration;

const LASTING: [CreateMode; 3] =
    [CreateMode::Persistent, CreateMode::Container, CreateMode::PersistentSequential];
const SEQUENTIAL: [CreateMode; 2] = [CreateMode::EphemeralSequential, CreateMode::PersistentSequential];
const TTL: Duration = Duration::from_secs(2);

async fn kept(client: &Client, path: &str, mode: CreateMode) -> KeptNode {
    let node = soon(KeptNode::builder(client, path).data("1").mode(mode).keep()).await.unwrap();
    soon(node.present()).await.unwrap();
    node
}

async fn until_data(other: &Client, path: &str, data: &str) {
    until(async || other.get(path).await.is_ok_and(|node| node.data == data)).await;
}

/// Connects a client whose parent nodes remain when they are empty.
async fn plain(server: &TestServer) -> Client {
    builder(server, server.connect_string()).parents(ParentKind::Persistent).connect().await.unwrap()
}

both_backends! {
    async fn a_node_of_each_mode_is_kept_changed_and_removed(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (plain(&server).await, connect(&server).await);
        for (n, mode) in LASTING.into_iter().chain([CreateMode::EphemeralSequential]).enumerate() {
            let node = kept(&client, &format!("/g{n}/a"), mode).await;
            let path = node.path().to_owned();
            let made = other.get(&path).await.unwrap();
            assert_eq!(&made.data[..], b"1", "{mode:?}");
            let is_ephemeral = mode == CreateMode::EphemeralSequential;
            assert_eq!(made.stat.owner, client.session_id().filter(|_| is_ephemeral));
            node.set("2");
            soon(node.present()).await.unwrap();
            assert_eq!(&other.get(&path).await.unwrap().data[..], b"2");
            // Another client deletes the node, and then changes it.
            other.delete(&path, None).await.unwrap();
            until_data(&other, &path, "2").await;
            other.set(&path, "theirs", None).await.unwrap();
            until_data(&other, &path, "2").await;
            let error = KeptNode::new(&client, &path, "").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyRegistered);
            soon(node.remove()).await.unwrap();
            assert_eq!(other.exists(&path).await.unwrap(), None);
            assert!(other.children(&format!("/g{n}")).await.unwrap().names.is_empty());
        }
    }

    async fn nodes_outlive_a_session_with_their_names(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (plain(&server).await, connect(&server).await);
        let lasting = kept(&client, "/a", CreateMode::Persistent).await;
        let made = other.exists("/a").await.unwrap().unwrap();
        let numbered = kept(&client, "/n-", CreateMode::EphemeralSequential).await;
        let session = client.session_id().unwrap();
        server.expire(session).await.unwrap();
        until(async || {
            let stat = other.exists(numbered.path()).await.unwrap();
            stat.is_some_and(|stat| stat.owner.is_some_and(|owner| owner != session))
        })
        .await;
        assert_eq!(other.exists("/a").await.unwrap().map(|stat| stat.czxid), Some(made.czxid));
        lasting.set("2");
        until_data(&other, "/a", "2").await;
        soon(client.close()).await;
        assert!(other.exists("/a").await.unwrap().is_some(), "the node must outlive its session");
        assert!(matches!(lasting.status(), KeptStatus::Failing(error) if error.kind() == ErrorKind::Closed));
    }

    async fn a_lost_reply_creates_one_sequential_node(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        other.create("/f", "", CreateMode::Persistent).await.unwrap();
        for mode in SEQUENTIAL {
            for lost in [true, false] {
                let request = Rule::on(OpCode::Multi).path(|path| path.contains("/f/"));
                let fired = proxy.add(if lost { request.reset_after() } else { request.reset_before() });
                let node = kept(&client, "/f/n-", mode).await;
                assert!(fired.has_fired(), "{mode:?}");
                let names = other.children("/f").await.unwrap().names;
                assert_eq!(names.len(), 1, "{names:?}");
                assert_eq!(node.path(), format!("/f/{}", names[0]));
                soon(node.remove()).await.unwrap();
            }
        }
    }

    async fn a_lost_reply_neither_doubles_nor_hides_what_is_kept(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for rule in [|on: docent_battery::On| on.reset_after(), |on: docent_battery::On| on.reset_before()] {
            let add = || proxy.add(rule(Rule::on(OpCode::Multi).path(|path| path.ends_with("/a"))));
            add();
            let node = kept(&client, "/a", CreateMode::Persistent).await;
            add();
            node.set("2");
            soon(node.present()).await.unwrap();
            assert_eq!(other.get("/a").await.unwrap().stat.version, 1);
            add();
            soon(node.remove()).await.unwrap();
            assert_eq!(other.exists("/a").await.unwrap(), None);
        }
    }

    async fn a_leftover_node_is_taken_over_and_another_clients_node_is_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        other.create("/left", "old", CreateMode::Persistent).await.unwrap();
        let node = kept(&client, "/left", CreateMode::Persistent).await;
        let found = other.get("/left").await.unwrap();
        assert_eq!((found.stat.version, &found.data[..]), (1, b"1".as_ref()));
        drop(node);
        until(async || other.exists("/left").await.unwrap().is_none()).await;
        other.create("/taken", "theirs", CreateMode::Ephemeral).await.unwrap();
        let node = soon(KeptNode::builder(&client, "/taken").mode(CreateMode::Persistent).keep()).await.unwrap();
        until(async || matches!(node.status(), KeptStatus::Occupied { session_id } if Some(session_id) == other.session_id())).await;
        assert_eq!(&other.get("/taken").await.unwrap().data[..], b"theirs");
        soon(other.close()).await;
        soon(node.present()).await.unwrap();
        assert_eq!(client.get("/taken").await.unwrap().stat.owner, None);
    }

    async fn a_node_with_children_is_removed_once_they_are_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = kept(&client, "/a", CreateMode::Persistent).await;
        other.create("/a/b", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(soon(node.remove()).await.unwrap_err().kind(), ErrorKind::NotEmpty);
        let error = KeptNode::builder(&client, "/a").data("").take_over().start().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyRegistered, "the predecessor has another mode");
        other.delete("/a/b", None).await.unwrap();
        soon(KeptNode::wait_vacant(&client, "/a")).await.unwrap();
        assert_eq!(other.exists("/a").await.unwrap(), None);
    }

    async fn a_dropped_call_leaves_no_numbered_node(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        other.create("/f", "", CreateMode::Persistent).await.unwrap();
        for polls in 1..20 {
            let keep = KeptNode::builder(&client, "/f/n-").mode(CreateMode::EphemeralSequential).keep();
            let mut keep = Box::pin(keep);
            for _ in 0..polls {
                if tokio::time::timeout(Duration::from_millis(1), &mut keep).await.is_ok() {
                    break;
                }
            }
            drop(keep);
        }
        until(async || child_count(&other, "/f").await == 0).await;
    }

    async fn a_time_to_live_requires_servers_that_enable_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let with = |path: &str, ttl| KeptNode::builder(&client, path).mode(CreateMode::PersistentTtl(ttl)).keep();
        let node = soon(with("/a", TTL)).await.unwrap();
        assert_eq!(soon(node.present()).await.unwrap_err().kind(), ErrorKind::Unsupported);
        for ttl in [Duration::from_millis(900), Duration::MAX] {
            assert_eq!(soon(with("/b", ttl)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        let numbered = KeptNode::builder(&client, "/n-").mode(CreateMode::PersistentSequentialTtl(TTL)).keep();
        assert_eq!(soon(numbered).await.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(soon(with("a", TTL)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        soon(client.close()).await;
        assert_eq!(soon(with("/c", TTL)).await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_node_with_a_time_to_live_is_touched_and_expires_once_no_client_keeps_it(backend: Backend) {
        let options =
            ServerOptions::default().extended_types(true).container_check_interval(Duration::from_millis(100));
        let server = backend.start_own_with(options).await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = kept(&client, "/a", CreateMode::PersistentTtl(TTL)).await;
        let numbered = kept(&client, "/n-", CreateMode::PersistentSequentialTtl(TTL)).await;
        let mut watched = other.watch_data("/a").unwrap();
        let made = soon(watched.next()).await.unwrap().unwrap().unwrap().stat;
        for path in ["/a", numbered.path()] {
            let touch = format!("{path}/touch");
            let first = other.exists(&touch).await.unwrap().unwrap().version;
            // Five touches take longer than the time to live.
            until(async || other.exists(&touch).await.unwrap().unwrap().version >= first + 5).await;
        }
        assert_eq!(
            other.exists("/a").await.unwrap().map(|stat| (stat.czxid, stat.version)),
            Some((made.czxid, 0))
        );
        // If another client deletes the child, the client re-creates it.
        other.delete("/a/touch", None).await.unwrap();
        until(async || other.exists("/a/touch").await.unwrap().is_some()).await;
        soon(node.remove()).await.unwrap();
        assert_eq!(other.exists("/a").await.unwrap(), None);
        let path = numbered.path().to_owned();
        soon(client.close()).await;
        until(async || other.exists(&path).await.unwrap().is_none()).await;
    }

    async fn a_node_below_a_base_waits_for_the_base(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (plain(&server).await, connect(&server).await);
        let mut node = KeptNode::builder(&client, "/base/folder/a").data("1").below("/base").start().unwrap();
        // Returns once an attempt to create the node was made.
        let waits = async |node: &mut KeptNode| loop {
            match soon(node.changed()).await.unwrap() {
                KeptStatus::Failing(error) => {
                    assert_eq!((error.kind(), error.path()), (ErrorKind::NoNode, Some("/base")));
                    assert_eq!(other.exists("/base").await.unwrap(), None);
                    break;
                }
                KeptStatus::Pending | KeptStatus::Present { .. } => {}
                status => panic!("{status}"),
            }
        };
        waits(&mut node).await;
        for _ in 0..2 {
            other.create("/base", "", CreateMode::Persistent).await.unwrap();
            until_data(&other, "/base/folder/a", "1").await;
            soon(node.present()).await.unwrap();
            let delete = other.transaction().delete("/base/folder/a", None).delete("/base/folder", None);
            soon(delete.delete("/base", None).commit()).await.unwrap();
            waits(&mut node).await;
        }
        // Only parents of the node are such a base.
        for base in ["/bas", "/base/folder/a", "/base/", "base", ""] {
            let error = KeptNode::builder(&client, "/base/folder/b").below(base).start().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{base:?}");
            assert!(error.to_string().contains(&format!("base {base:?} must be a parent of the node")), "{error}");
        }
        let sequential = KeptNode::builder(&client, "/base/n-").below("/base").mode(SEQUENTIAL[0]);
        assert_eq!(sequential.keep().await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let top = KeptNode::builder(&client, "/top/a").below("/").start().unwrap();
        soon(top.present()).await.unwrap();
    }

    async fn a_sequential_node_cannot_be_started_without_waiting(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for mode in SEQUENTIAL {
            let error = KeptNode::builder(&client, "/n-").mode(mode).start().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }
}
