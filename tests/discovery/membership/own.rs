//! Members that joined through the same group handle that lists them.

use super::{GROUP, group, ids, next, until_present};
use crate::connect;
use docent::CreateMode;
use docent::discovery::{MemberChange, Presence};
use docent::node::{Acl, Permissions};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use futures_util::StreamExt;
use std::task::Poll;

both_backends! {
    async fn a_member_always_lists_itself(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let own_group = group(&client);
        let members = soon(own_group.members()).await.unwrap();
        let me = soon(own_group.join("me", "1")).await.unwrap();
        let mut changes = members.changes();
        assert_eq!(next(&mut changes).await, "+me=1");
        for _ in 0..2 {
            let session = client.session_id().unwrap();
            server.expire(session).await.unwrap();
            assert_eq!(ids(&members), "me");
            until_present(&client, &other, me.path()).await;
            assert_eq!(ids(&members), "me");
            other.delete(me.path(), None).await.unwrap();
            assert_eq!(ids(&members), "me");
            until_present(&client, &other, me.path()).await;
        }
        let them = soon(group(&other).join("them", "")).await.unwrap();
        assert_eq!(next(&mut changes).await, "+them=", "the stream reported nothing about the own member meanwhile");
        assert_eq!(ids(&members), "me them");
        drop(them);
        soon(me.leave()).await.unwrap();
        let mut reported = [next(&mut changes).await, next(&mut changes).await];
        reported.sort();
        assert_eq!(reported, ["-me", "-them"]);
    }

    async fn a_re_created_node_is_not_reported_after_its_member_left(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let own_group = group(&client);
        let members = soon(own_group.members()).await.unwrap();
        let me = soon(own_group.join("me", "1")).await.unwrap();
        let mut changes = members.changes();
        assert_eq!(next(&mut changes).await, "+me=1");
        // The stream learns of all this later.
        other.delete(me.path(), None).await.unwrap();
        until_present(&client, &other, me.path()).await;
        let _them = soon(group(&other).join("them", "")).await.unwrap();
        soon(async { while ids(&members) != "me them" { docent_tests::pause().await; } }).await;
        soon(me.leave()).await.unwrap();
        soon(async { while ids(&members) != "them" { docent_tests::pause().await; } }).await;
        let mut reported = [next(&mut changes).await, next(&mut changes).await];
        reported.sort();
        assert_eq!(reported, ["+them=", "-me"]);
        assert!(futures_util::poll!(changes.next()).is_pending());
    }

    async fn the_next_member_with_the_same_id_is_reported_as_joined(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let own_group = group(&client);
        let members = soon(own_group.members()).await.unwrap();
        let me = soon(own_group.join("me", "1")).await.unwrap();
        let mut changes = members.changes();
        assert_eq!(next(&mut changes).await, "+me=1");
        // The stream learns of all this later.
        soon(me.leave()).await.unwrap();
        let _again = soon(group(&other).join("me", "1")).await.unwrap();
        let _them = soon(group(&other).join("them", "")).await.unwrap();
        soon(async { while ids(&members) != "me them" { docent_tests::pause().await; } }).await;
        let mut reported = [next(&mut changes).await, next(&mut changes).await, next(&mut changes).await];
        reported.sort();
        assert_eq!(reported, ["+me=1", "+them=", "-me"]);
    }

    async fn a_leave_does_not_affect_a_later_member_with_the_same_id(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let own_group = group(&client);
        let members = soon(own_group.members()).await.unwrap();
        let me = soon(own_group.join("one", "before")).await.unwrap();
        let mut leaving = Box::pin(me.leave());
        assert!(futures_util::poll!(&mut leaving).is_pending());
        // The node is deleted before the second join, but the leaving member has not received the reply yet.
        let again = soon(own_group.join("one", "after")).await.unwrap();
        soon(leaving).await.unwrap();
        assert_eq!(again.data(), "after");
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert_eq!(ids(&members), "one");
    }

    async fn a_leave_after_the_node_was_deleted_is_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        // The group is not a container, because the servers would delete an empty container together with its
        // access control list.
        other.create(GROUP, "", CreateMode::Persistent).await.unwrap();
        let own_group = group(&client);
        let members = soon(own_group.members()).await.unwrap();
        let mut changes = members.changes();
        let me = soon(own_group.join("one", "1")).await.unwrap();
        assert_eq!(next(&mut changes).await, "+one=1");
        // The member's node can be deleted, but not re-created.
        let mut read_only = Acl::open_unsafe();
        read_only.permissions = Permissions::READ | Permissions::DELETE | Permissions::ADMIN;
        other.set_acl(GROUP, [read_only], None).await.unwrap();
        other.delete(me.path(), None).await.unwrap();
        soon(async { while !matches!(me.presence(), Presence::Failing(_)) { docent_tests::pause().await; } }).await;
        soon(async { while members.get("one").is_some_and(|peer| peer.is_present()) { docent_tests::pause().await; } }).await;
        let mut change = futures_util::poll!(changes.next());
        // `Current` follows the member if the stream read its first list only after the join.
        if matches!(change, Poll::Ready(Some(Ok(MemberChange::Current)))) {
            change = futures_util::poll!(changes.next());
        }
        assert!(change.is_pending(), "a member stays listed until it leaves, but: {change:?}");
        soon(me.leave()).await.unwrap();
        assert_eq!(next(&mut changes).await, "-one");
        assert_eq!(ids(&members), "");
    }
}
