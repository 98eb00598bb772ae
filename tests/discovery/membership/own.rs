//! Members that joined by the group that they look at.

use super::{GROUP, group, ids, next, until_present};
use crate::connect;
use docent::CreateMode;
use docent::discovery::Presence;
use docent::node::{Acl, Permissions};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use futures_util::StreamExt;

both_backends! {
    async fn one_is_always_in_the_list_of_ones_own_membership(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mine = group(&client);
        let members = soon(mine.members()).await.unwrap();
        let me = soon(mine.join("me", "1")).await.unwrap();
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
        assert_eq!(next(&mut changes).await, "+them=", "nothing was told about oneself meanwhile");
        assert_eq!(ids(&members), "me them");
        drop(them);
        soon(me.leave()).await.unwrap();
        let mut gone = [next(&mut changes).await, next(&mut changes).await];
        gone.sort();
        assert_eq!(gone, ["-me", "-them"]);
    }

    async fn a_node_that_was_made_anew_before_its_member_left_is_not_told_behind_that(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mine = group(&client);
        let members = soon(mine.members()).await.unwrap();
        let me = soon(mine.join("me", "1")).await.unwrap();
        let mut changes = members.changes();
        assert_eq!(next(&mut changes).await, "+me=1");
        // The stream hears of all this later.
        other.delete(me.path(), None).await.unwrap();
        until_present(&client, &other, me.path()).await;
        let _them = soon(group(&other).join("them", "")).await.unwrap();
        soon(async { while ids(&members) != "me them" { docent_tests::pause().await; } }).await;
        soon(me.leave()).await.unwrap();
        soon(async { while ids(&members) != "them" { docent_tests::pause().await; } }).await;
        let mut told = [next(&mut changes).await, next(&mut changes).await];
        told.sort();
        assert_eq!(told, ["+them=", "-me"]);
        assert!(futures_util::poll!(changes.next()).is_pending());
    }

    async fn who_has_the_id_next_is_told_to_join(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mine = group(&client);
        let members = soon(mine.members()).await.unwrap();
        let me = soon(mine.join("me", "1")).await.unwrap();
        let mut changes = members.changes();
        assert_eq!(next(&mut changes).await, "+me=1");
        // The stream hears of all this later.
        soon(me.leave()).await.unwrap();
        let _again = soon(group(&other).join("me", "1")).await.unwrap();
        let _them = soon(group(&other).join("them", "")).await.unwrap();
        soon(async { while ids(&members) != "me them" { docent_tests::pause().await; } }).await;
        let mut told = [next(&mut changes).await, next(&mut changes).await, next(&mut changes).await];
        told.sort();
        assert_eq!(told, ["+me=1", "+them=", "-me"]);
    }

    async fn who_leaves_takes_nothing_of_who_joins_after_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mine = group(&client);
        let members = soon(mine.members()).await.unwrap();
        let me = soon(mine.join("one", "before")).await.unwrap();
        let mut leaving = Box::pin(me.leave());
        assert!(futures_util::poll!(&mut leaving).is_pending());
        // The node is gone when it joins, and the member that left does not know yet.
        let again = soon(mine.join("one", "after")).await.unwrap();
        soon(leaving).await.unwrap();
        assert_eq!(again.data(), "after");
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert_eq!(ids(&members), "one");
    }

    async fn who_leaves_after_its_node_was_deleted_is_told_to_be_gone(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        // No container: the servers would delete it as soon as it is empty, and its rules with it.
        other.create(GROUP, "", CreateMode::Persistent).await.unwrap();
        let mine = group(&client);
        let members = soon(mine.members()).await.unwrap();
        let mut changes = members.changes();
        let me = soon(mine.join("one", "1")).await.unwrap();
        assert_eq!(next(&mut changes).await, "+one=1");
        // Its node cannot be made anew.
        let mut read_only = Acl::open_unsafe();
        read_only.permissions = Permissions::READ | Permissions::DELETE | Permissions::ADMIN;
        other.set_acl(GROUP, [read_only], None).await.unwrap();
        other.delete(me.path(), None).await.unwrap();
        soon(async { while !matches!(me.presence(), Presence::Failing(_)) { docent_tests::pause().await; } }).await;
        soon(async { while members.get("one").is_some_and(|peer| peer.is_present()) { docent_tests::pause().await; } }).await;
        assert!(futures_util::poll!(changes.next()).is_pending(), "one is a member as long as one does not leave");
        soon(me.leave()).await.unwrap();
        assert_eq!(next(&mut changes).await, "-one");
        assert_eq!(ids(&members), "");
    }
}
