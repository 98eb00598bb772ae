//! Kept nodes that are taken over just before they would be removed.

use crate::{builder, connect};
use bytes::Bytes;
use docent::node::{Acl, Permissions};
use docent::recipe::{KeptNode, KeptStatus};
use docent::{Client, CreateMode, Error, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

/// Keeps a node at `path`, in the place of one that is about to be removed.
fn take_over(client: &Client, path: &str, data: impl Into<Bytes>) -> Result<KeptNode, Error> {
    KeptNode::builder(client, path).data(data).take_over().start()
}

both_backends! {
    async fn a_node_about_to_be_removed_remains_if_it_is_wanted_again(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        let made = other.get("/a").await.unwrap().stat;
        // The handle is dropped, and the node is taken over immediately.
        drop(node);
        let node = take_over(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().stat, made);
        // For the handle that removed the node, the removal succeeds.
        let mut removing = Box::pin(node.remove());
        assert!(futures_util::poll!(&mut removing).is_pending());
        let node = take_over(&client, "/a", "2").unwrap();
        soon(removing).await.unwrap();
        soon(node.present()).await.unwrap();
        let now = other.get("/a").await.unwrap();
        assert_eq!((now.data, now.stat.czxid), ("2".into(), made.czxid));
        // No second handle can take over a node that is wanted.
        assert_eq!(take_over(&client, "/a", "3").unwrap_err().kind(), ErrorKind::AlreadyRegistered);
        soon(node.remove()).await.unwrap();
        assert_eq!(other.exists("/a").await.unwrap(), None);
    }

    async fn a_path_without_a_node_can_be_taken_over(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = take_over(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "1");
        soon(node.remove()).await.unwrap();
        assert_eq!(take_over(&client, "a", "").unwrap_err().kind(), ErrorKind::InvalidInput);
        soon(client.close()).await;
        assert_eq!(take_over(&client, "/a", "").unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn the_last_request_counts_also_while_the_servers_are_unreachable(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mut node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        let made = other.get("/a").await.unwrap().stat.czxid;
        for wanted in [true, false] {
            proxy.cut().await;
            drop(node);
            // The node's task has sent its request to the servers and waits.
            for _ in 0..100 {
                docent_tests::pause().await;
            }
            node = take_over(&client, "/a", "1").unwrap();
            let mut last = take_over(&client, "/b", "").unwrap();
            drop(KeptNode::new(&client, "/c", "").unwrap());
            for round in 0..3 {
                drop(last);
                last = take_over(&client, "/b", round.to_string()).unwrap();
                // Gives the path's task a chance to run.
                docent_tests::pause().await;
            }
            let status = last.status();
            assert!(!matches!(status, KeptStatus::Removed), "{status:?}");
            let last = wanted.then_some(last);
            proxy.heal().await.unwrap();
            if let Some(last) = last {
                soon(last.present()).await.unwrap();
                assert_eq!(other.get("/b").await.unwrap().data, "2");
                soon(last.remove()).await.unwrap();
            }
            soon(KeptNode::wait_vacant(&client, "/b")).await.unwrap();
            soon(KeptNode::wait_vacant(&client, "/c")).await.unwrap();
            assert_eq!((other.exists("/b").await.unwrap(), other.exists("/c").await.unwrap()), (None, None));
        }
        soon(node.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().stat.czxid, made, "the node must not be re-created");
    }

    async fn a_node_whose_removal_was_requested_is_removed_although_its_handle_exists(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = KeptNode::new(&client, "/a", "1").unwrap();
        soon(held.present()).await.unwrap();
        held.request_removal();
        held.set("2");
        soon(held.removed()).await.unwrap();
        assert_eq!(other.exists("/a").await.unwrap(), None);
        assert_eq!(soon(held.present()).await.unwrap_err().kind(), ErrorKind::Closed);
        let node = KeptNode::new(&client, "/a", "3").unwrap();
        soon(node.present()).await.unwrap();
        node.request_removal();
        let renewed = take_over(&client, "/a", "4").unwrap();
        node.set("5");
        drop((held, node));
        soon(renewed.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "4");
    }

    async fn a_refused_node_is_not_retried_for_each_other_takeover(backend: Backend) {
        // More than the number of pauses in a run that is ten times slower than a slow one.
        const MOST: usize = 20;
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        other.create("/ro", "", CreateMode::Persistent).await.unwrap();
        let mut read_only = Acl::open_unsafe();
        read_only.permissions = Permissions::READ | Permissions::ADMIN;
        other.set_acl("/ro", [read_only], None).await.unwrap();
        let refused = KeptNode::new(&client, "/ro/x", "").unwrap();
        assert_eq!(soon(refused.present()).await.unwrap_err().kind(), ErrorKind::NoAuth);
        let mut node = KeptNode::new(&client, "/a", "").unwrap();
        for round in 0..3 * MOST {
            drop(node);
            node = take_over(&client, "/a", round.to_string()).unwrap();
            soon(node.present()).await.unwrap();
        }
        let attempts = proxy.trace().iter().filter(|frame| {
            frame.is_request(OpCode::Multi) && frame.path.as_deref().is_some_and(|path| path.ends_with("/ro/x"))
        }).count();
        assert!((1..MOST).contains(&attempts), "{attempts}");
        // The refused node's own successor does not have to wait.
        drop(refused);
        let renewed = take_over(&client, "/ro/x", "").unwrap();
        assert_eq!(soon(renewed.present()).await.unwrap_err().kind(), ErrorKind::NoAuth);
    }

    async fn a_client_that_closes_also_notifies_the_last_handle(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        drop(KeptNode::new(&client, "/a", "1").unwrap());
        let node = take_over(&client, "/a", "2").unwrap();
        proxy.cut().await;
        let closing = tokio::spawn({ let client = client.clone(); async move { client.close().await } });
        assert_eq!(soon(node.present()).await.unwrap_err().kind(), ErrorKind::Closed);
        proxy.heal().await.unwrap();
        soon(closing).await.unwrap();
        assert!(matches!(node.status(), KeptStatus::Failing(error) if error.kind() == ErrorKind::Closed));
        soon(async { while other.exists("/a").await.unwrap().is_some() {} }).await;
    }
}
