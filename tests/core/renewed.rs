//! Nodes that are kept on although they were about to be removed.

use crate::{builder, connect};
use docent::node::{Acl, Permissions};
use docent::recipe::{KeptNode, KeptStatus};
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

both_backends! {
    async fn a_node_that_is_about_to_go_stays_when_it_is_wanted_again(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        let made = other.get("/a").await.unwrap().stat;
        // Dropped and wanted again in one breath.
        drop(node);
        let node = KeptNode::take_over(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().stat, made);
        // To the handle that removed it, it is removed.
        let mut removing = Box::pin(node.remove());
        assert!(futures_util::poll!(&mut removing).is_pending());
        let node = KeptNode::take_over(&client, "/a", "2").unwrap();
        soon(removing).await.unwrap();
        soon(node.present()).await.unwrap();
        let now = other.get("/a").await.unwrap();
        assert_eq!((now.data, now.stat.czxid), ("2".into(), made.czxid));
        // A node that is wanted is nobody else's.
        assert_eq!(KeptNode::take_over(&client, "/a", "3").unwrap_err().kind(), ErrorKind::AlreadyRegistered);
        soon(node.remove()).await.unwrap();
        assert_eq!(other.exists("/a").await.unwrap(), None);
    }

    async fn it_may_be_renewed_where_there_is_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::take_over(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "1");
        soon(node.remove()).await.unwrap();
        assert_eq!(KeptNode::take_over(&client, "a", "").unwrap_err().kind(), ErrorKind::InvalidInput);
        soon(client.close()).await;
        assert_eq!(KeptNode::take_over(&client, "/a", "").unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn what_is_wanted_last_counts_also_while_the_servers_are_away(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mut node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        let made = other.get("/a").await.unwrap().stat.czxid;
        for wanted in [true, false] {
            proxy.cut().await;
            drop(node);
            // Its task has asked the servers by now, and waits.
            for _ in 0..100 {
                docent_tests::pause().await;
            }
            node = KeptNode::take_over(&client, "/a", "1").unwrap();
            let mut last = KeptNode::take_over(&client, "/b", "").unwrap();
            drop(KeptNode::new(&client, "/c", "").unwrap());
            for round in 0..3 {
                drop(last);
                last = KeptNode::take_over(&client, "/b", round.to_string()).unwrap();
                // The task at the path may have looked meanwhile.
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
        assert_eq!(other.get("/a").await.unwrap().stat.czxid, made, "it never left");
    }

    async fn a_node_that_is_told_to_leave_goes_although_it_is_still_held(backend: Backend) {
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
        let renewed = KeptNode::take_over(&client, "/a", "4").unwrap();
        node.set("5");
        drop((held, node));
        soon(renewed.present()).await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "4");
    }

    async fn a_node_that_is_refused_is_not_tried_for_each_other_that_is_renewed(backend: Backend) {
        // More than there are pauses in a run that is ten times as slow as a slow one.
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
            node = KeptNode::take_over(&client, "/a", round.to_string()).unwrap();
            soon(node.present()).await.unwrap();
        }
        let attempts = proxy.trace().iter().filter(|frame| {
            frame.is_request(OpCode::Multi) && frame.path.as_deref().is_some_and(|path| path.ends_with("/ro/x"))
        }).count();
        assert!((1..MOST).contains(&attempts), "{attempts}");
        // Its own heir is not kept waiting.
        drop(refused);
        let renewed = KeptNode::take_over(&client, "/ro/x", "").unwrap();
        assert_eq!(soon(renewed.present()).await.unwrap_err().kind(), ErrorKind::NoAuth);
    }

    async fn a_client_that_closes_tells_also_the_one_who_wanted_it_last(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        drop(KeptNode::new(&client, "/a", "1").unwrap());
        let node = KeptNode::take_over(&client, "/a", "2").unwrap();
        proxy.cut().await;
        let closing = tokio::spawn({ let client = client.clone(); async move { client.close().await } });
        assert_eq!(soon(node.present()).await.unwrap_err().kind(), ErrorKind::Closed);
        proxy.heal().await.unwrap();
        soon(closing).await.unwrap();
        assert!(matches!(node.status(), KeptStatus::Failing(error) if error.kind() == ErrorKind::Closed));
        soon(async { while other.exists("/a").await.unwrap().is_some() {} }).await;
    }
}
