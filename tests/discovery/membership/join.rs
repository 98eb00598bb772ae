//! Joining, leaving, and obstacles to both.

use super::{GROUP, group, ids, next};
use crate::{builder, connect};
use docent::discovery::Presence;
use docent::{CreateMode, ErrorKind, Membership};
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, soon};

both_backends! {
    async fn members_join_change_and_leave_in_curators_layout(backend: Backend) {
        let server = backend.start().await;
        let (client, other, watcher) = (connect(&server).await, connect(&server).await, connect(&server).await);
        let members = soon(group(&watcher).members()).await.unwrap();
        assert!(members.current().is_empty());
        let mut changes = members.changes();
        let one = soon(group(&client).join("one", "10.0.0.1")).await.unwrap();
        assert_eq!(next(&mut changes).await, "+one=10.0.0.1");
        let node = watcher.get("/cluster/hosts/one").await.unwrap();
        assert_eq!((node.data, node.stat.owner), ("10.0.0.1".into(), client.session_id()));
        let two = soon(group(&other).join_by_identity("two")).await.unwrap();
        assert_eq!(next(&mut changes).await, format!("+two={}", other.default_data()));
        assert_eq!(ids(&members), "one two");
        let peer = members.get("one").unwrap();
        assert_eq!((peer.session_id, peer.czxid), (client.session_id(), Some(node.stat.czxid)));
        assert!(peer.is_present() && one.is_present() && matches!(one.presence(), Presence::Present));
        one.set_data("10.0.0.9");
        assert_eq!(one.data(), "10.0.0.9");
        assert_eq!(next(&mut changes).await, "one=10.0.0.9");
        soon(one.leave()).await.unwrap();
        assert_eq!(next(&mut changes).await, "-one");
        assert!(watcher.exists("/cluster/hosts/one").await.unwrap().is_none());
        drop(two);
        assert_eq!(next(&mut changes).await, "-two");
        assert!(members.get("two").is_none() && members.current().is_empty());
        // The name can be joined again immediately, even by the same client.
        let two = soon(group(&other).join("two", "again")).await.unwrap();
        assert_eq!(next(&mut changes).await, "+two=again");
        drop(two);
        let _two = soon(group(&other).join("two", "again")).await.unwrap();
    }

    async fn a_restarted_process_waits_for_the_node_of_its_predecessor(backend: Backend) {
        let server = backend.start().await;
        let (before, watcher) = (connect(&server).await, connect(&server).await);
        let predecessor = soon(group(&before).join("one", "old")).await.unwrap();
        let after = connect(&server).await;
        let joining = tokio::spawn({ let group = group(&after); async move { group.join("one", "new").await } });
        // The successor finds its predecessor's node, and waits.
        let sessions = server.front();
        soon(async { while sessions.trace().iter().filter(|frame| frame.is_reply(OpCode::Create2)).count() < 2 {
            docent_tests::pause().await;
        } }).await;
        assert_eq!(watcher.get(predecessor.path()).await.unwrap().data, "old");
        assert!(!joining.is_finished());
        // Finally the predecessor crashes.
        server.expire(before.session_id().unwrap()).await.unwrap();
        soon(before.close()).await;
        let successor = soon(joining).await.unwrap().unwrap();
        let node = watcher.get(successor.path()).await.unwrap();
        assert_eq!((node.data, node.stat.owner), ("new".into(), after.session_id()));
    }

    async fn a_persisting_node_of_another_member_is_an_error_and_is_not_deleted(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let client = builder(&server, server.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let foreign = soon(group(&other).join("one", "theirs")).await.unwrap();
        let error = soon(group(&client).join("one", "mine")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NodeExists);
        assert!(error.to_string().contains(&format!("{:#x}", other.session_id().unwrap())), "{error}");
        assert_eq!(other.get(foreign.path()).await.unwrap().data, "theirs");
        soon(foreign.leave()).await.unwrap();
        // Nothing of the failed attempt is left that could later create the node.
        assert!(other.exists("/cluster/hosts/one").await.unwrap().is_none());
        other.create("/cluster/hosts/two", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(soon(group(&client).join("two", "")).await.unwrap_err().kind(), ErrorKind::NodeExists);
    }

    async fn a_client_joins_once_with_an_id(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let own_group = group(&client);
        let one = soon(own_group.join("one", "1")).await.unwrap();
        assert_eq!(soon(own_group.join("one", "2")).await.unwrap_err().kind(), ErrorKind::AlreadyRegistered);
        assert_eq!(soon(group(&client).join("one", "2")).await.unwrap_err().kind(), ErrorKind::AlreadyRegistered);
        assert_eq!((one.data(), ids(&soon(own_group.members()).await.unwrap())), ("1".into(), "one".into()));
        let two = soon(own_group.join("two", "2")).await.unwrap();
        assert_eq!((one.id(), two.id()), ("one", "two"));
    }

    async fn bad_ids_and_paths_are_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for path in ["", "a", "/", "/a/", "//", "/a//b", "/.", "/..", "/a\0"] {
            let error = Membership::new(&client, path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
        }
        for id in ["", "/", "a/b", ".", "..", "a\0", "\u{1f}"] {
            let error = soon(group(&client).join(id, "")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{id:?}");
        }
        let small = builder(&server, server.connect_string()).max_request(10_000).connect().await.unwrap();
        let error = soon(group(&small).join("large", vec![0; 20_000])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(client.exists(&format!("{GROUP}/large")).await.unwrap().is_none(), "nothing was stored");
        // The member keeps its earlier data, and reports the error.
        let mut member = soon(group(&small).join("small", "1")).await.unwrap();
        member.set_data(vec![0; 20_000]);
        soon(async { while !matches!(member.changed().await, Some(Presence::Failing(error)) if error.kind() == ErrorKind::TooLarge) {} }).await;
        assert_eq!(client.get(member.path()).await.unwrap().data, "1");
        member.set_data("2");
        soon(async { while client.get(member.path()).await.unwrap().data != "2" {} }).await;
        soon(small.close()).await;
        soon(async { while member.changed().await.is_some() {} }).await;
        assert!(soon(member.changed()).await.is_none() && matches!(member.presence(), Presence::Closed));
    }
}
