//! Lists and changes as seen by readers of a group.

use super::{GROUP, group, ids, next, until, until_present};
use crate::{builder, connect};
use docent::discovery::Presence;
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::StreamExt;
use futures_util::future::try_join_all;

both_backends! {
    async fn a_member_rejoins_in_a_new_session_and_other_members_see_it(backend: Backend) {
        let server = backend.start().await;
        let (client, watcher) = (connect(&server).await, connect(&server).await);
        let members = soon(group(&watcher).members()).await.unwrap();
        let mut changes = members.changes();
        let member = soon(group(&client).join("one", "1")).await.unwrap();
        assert_eq!(next(&mut changes).await, "+one=1");
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert_eq!(next(&mut changes).await, "-one");
        assert_eq!(next(&mut changes).await, "+one=1");
        // The data is updated, even if it was changed while no server was reachable.
        member.set_data("2");
        assert_eq!(next(&mut changes).await, "one=2");
        watcher.delete(member.path(), None).await.unwrap();
        until_present(&client, &watcher, member.path()).await;
        until(&members, "one").await;
        assert_eq!(members.get("one").unwrap().data, "2");
    }

    async fn a_lost_link_removes_no_member(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let foreign = soon(group(&other).join("theirs", "1")).await.unwrap();
        let own_group = group(&client);
        let members = soon(own_group.members()).await.unwrap();
        let me = soon(own_group.join("mine", "1")).await.unwrap();
        let mut changes = members.changes();
        let mut reported = [next(&mut changes).await, next(&mut changes).await];
        reported.sort();
        assert_eq!(reported, ["+mine=1", "+theirs=1"]);
        for _ in 0..3 {
            proxy.cut().await;
            soon(async { while !members.is_stale() { docent_tests::pause().await; } }).await;
            assert!(members.stale_for().is_some());
            assert_eq!(ids(&members), "mine theirs");
            me.set_data("away");
            proxy.heal().await.unwrap();
            soon(async { while members.is_stale() { docent_tests::pause().await; } }).await;
            me.set_data("1");
        }
        foreign.set_data("2");
        loop {
            match next(&mut changes).await.as_str() {
                "theirs=2" => break,
                own => assert!(own.starts_with("mine="), "{own}"),
            }
        }
        assert_eq!(ids(&members), "mine theirs");
    }

    async fn every_child_of_the_group_is_a_member_and_nothing_deeper(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        other.create(&format!("{GROUP}/by-hand/deeper"), "", CreateMode::Persistent).await.unwrap();
        other.create(&format!("{GROUP}/bytes"), vec![0xff, 0], CreateMode::Ephemeral).await.unwrap();
        let members = soon(group(&client).members()).await.unwrap();
        assert_eq!(ids(&members), "by-hand bytes");
        assert_eq!(members.get("by-hand").unwrap().session_id, None);
        assert_eq!(members.get("bytes").unwrap().data.as_ref(), [0xff, 0]);
    }

    async fn lists_and_streams_end_with_the_client_and_leave_no_watch(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(group(&other).join("one", "1")).await.unwrap();
        let own_group = group(&client);
        let lists = [soon(own_group.members()).await.unwrap(), soon(own_group.members()).await.unwrap()];
        let mut changes = lists[0].changes();
        assert_eq!(next(&mut changes).await, "+one=1");
        drop(lists);
        other.sync("/").await.unwrap();
        drop(changes);
        // One watch remains, which belongs to the member itself.
        soon(async { while server.as_embedded().is_some_and(|server| server.watch_count() > 1) { client.sync("/").await.unwrap(); } }).await;
        let members = soon(own_group.members()).await.unwrap();
        let mut changes = members.changes();
        let me = soon(own_group.join("me", "")).await.unwrap();
        soon(client.close()).await;
        while soon(changes.next()).await.is_some() {}
        assert!(members.is_stale() && matches!(me.presence(), Presence::Closed));
        assert_eq!(soon(own_group.members()).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(soon(own_group.join("two", "")).await.unwrap_err().kind(), ErrorKind::Closed);
        soon(async { while other.exists(&format!("{GROUP}/me")).await.unwrap().is_some() {} }).await;
    }

    async fn hundreds_of_members_are_all_listed(backend: Backend) {
        const MEMBERS: usize = 200;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let members = soon(group(&other).members()).await.unwrap();
        let own_group = group(&client);
        let mut joined = Vec::new();
        for number in 0..MEMBERS {
            joined.push(soon(own_group.join(&format!("member-{number:03}"), number.to_string())).await.unwrap());
        }
        soon(async { while members.current().len() < MEMBERS { docent_tests::pause().await; } }).await;
        server.front().add(Rule::on(OpCode::GetChildren2).reset_after());
        for member in joined.drain(..MEMBERS / 2) {
            soon(member.leave()).await.unwrap();
        }
        soon(async { while members.current().len() > MEMBERS / 2 { docent_tests::pause().await; } }).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        for member in &joined {
            until_present(&client, &other, member.path()).await;
        }
        soon(async { while members.current().iter().filter(|peer| peer.session_id == client.session_id()).count() < MEMBERS / 2 {
            docent_tests::pause().await;
        } }).await;
    }

    async fn a_slow_reader_receives_the_difference(backend: Backend) {
        const PASSERS_BY: usize = 1_100;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let members = soon(group(&client).members()).await.unwrap();
        let mut changes = members.changes();
        let leaving = soon(group(&other).join("gone", "")).await.unwrap();
        let _staying = soon(group(&other).join("stays", "")).await.unwrap();
        // One listing may report both members, in any order.
        let mut initial = [next(&mut changes).await, next(&mut changes).await];
        initial.sort_unstable();
        assert_eq!(initial, ["+gone=", "+stays="]);
        let path = |number| format!("{GROUP}/{number}");
        let arrivals = (0..PASSERS_BY).map(|number| { let path = path(number); let other = &other; async move {
            other.create(&path, "", CreateMode::Ephemeral).await
        } });
        soon(try_join_all(arrivals)).await.unwrap();
        soon(async { while members.current().len() < PASSERS_BY + 2 { docent_tests::pause().await; } }).await;
        let departures = (0..PASSERS_BY).map(|number| { let path = path(number); let other = &other; async move {
            other.delete(&path, None).await
        } });
        soon(try_join_all(departures)).await.unwrap();
        soon(leaving.leave()).await.unwrap();
        until(&members, "stays").await;
        assert_eq!(next(&mut changes).await, "-gone");
    }
}
