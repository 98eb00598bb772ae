//! A gate that opens once enough members have arrived, and again once all have left.

use crate::{builder, connect};
use docent::locks::{BarrierError, Entered};
use docent::{Client, ConnectionState, CreateMode, DoubleBarrier, Error, ErrorKind};
use docent_battery::{Backend, Rule, Traced, both_backends};
use docent_proto::{OpCode, Request};
use docent_tests::{SHORT_SESSION, soon};
use futures_util::future::{join_all, try_join_all};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

const PATH: &str = "/barriers/work";

fn barrier(client: &Client, members: u32) -> DoubleBarrier {
    DoubleBarrier::new(client, PATH, members).unwrap()
}

fn enter(client: &Client, members: u32) -> JoinHandle<Result<Entered, Error>> {
    let barrier = barrier(client, members);
    tokio::spawn(async move { barrier.enter().await })
}

/// Waits until the barrier has that many children.
async fn until_nodes(client: &Client, count: usize) {
    soon(async {
        loop {
            let names = client.children(PATH).await.map(|children| children.names).unwrap_or_default();
            if names.len() == count {
                return;
            }
            docent_tests::pause().await;
        }
    })
    .await;
}

both_backends! {
    async fn no_member_proceeds_before_all_have_entered_and_none_before_all_have_left(backend: Backend) {
        const MEMBERS: usize = 5;
        let server = backend.start().await;
        let clients = join_all((0..MEMBERS).map(|_| connect(&server))).await;
        let (entered_count, left_count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // Two rounds at the same path.
        for round in 1..=2 {
            let work = clients.iter().map(|client| {
                let (barrier, entered_count, left_count) = (barrier(client, MEMBERS as u32), entered_count.clone(), left_count.clone());
                tokio::spawn(async move {
                    entered_count.fetch_add(1, Ordering::SeqCst);
                    let entered = barrier.enter().await.unwrap();
                    assert_eq!(entered_count.load(Ordering::SeqCst), round * MEMBERS);
                    left_count.fetch_add(1, Ordering::SeqCst);
                    entered.leave().await.unwrap();
                    assert_eq!(left_count.load(Ordering::SeqCst), round * MEMBERS);
                })
            });
            soon(try_join_all(work)).await.unwrap();
        }
        until_nodes(&clients[0], 0).await;
    }

    async fn nodes_and_data_match_curators_format(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        // Includes the `ready` node that a crashed round left behind.
        client.create(&format!("{PATH}/ready"), "", CreateMode::Persistent).await.unwrap();
        for _ in 0..2 {
            let entered = soon(barrier(&client, 1).enter()).await.unwrap();
            let names = client.children(PATH).await.unwrap().names;
            assert!(names.len() == 2 && names.contains(&"ready".to_owned()), "{names:?}");
            for name in names {
                let node = client.get(&format!("{PATH}/{name}")).await.unwrap();
                assert_eq!(node.data, client.identity(), "{name}");
                assert_eq!(node.stat.owner, client.session_id().filter(|_| name != "ready"));
            }
            soon(entered.leave()).await.unwrap();
        }
    }

    async fn surplus_members_are_admitted_while_the_barrier_is_open(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..4).map(|_| connect(&server))).await;
        let first: Vec<_> = clients[..2].iter().map(|client| enter(client, 2)).collect();
        let mut entered: Vec<_> = soon(try_join_all(first)).await.unwrap().into_iter().map(Result::unwrap).collect();
        for client in &clients[2..] {
            entered.push(soon(barrier(client, 2).enter()).await.unwrap());
        }
        let leave = entered.into_iter().map(Entered::leave);
        soon(try_join_all(leave)).await.unwrap();
        until_nodes(&clients[0], 0).await;
    }

    async fn a_member_that_times_out_leaves_no_node_and_does_not_count(backend: Backend) {
        let server = backend.start().await;
        let (one, two) = (connect(&server).await, connect(&server).await);
        let late = soon(barrier(&one, 2).enter_timeout(Duration::from_millis(200))).await;
        assert!(matches!(late, Err(BarrierError::TimedOut { .. })));
        until_nodes(&one, 0).await;
        let waiting = enter(&one, 2);
        until_nodes(&one, 1).await;
        assert!(!waiting.is_finished());
        let entered = soon(barrier(&two, 2).enter()).await.unwrap();
        let other = soon(waiting).await.unwrap().unwrap();
        drop((entered, other));
        until_nodes(&one, 1).await;
    }

    async fn a_late_opening_admits_no_member_if_too_few_remain(backend: Backend) {
        let server = backend.start().await;
        let (one, proxy) = (connect(&server).await, server.proxy().await);
        let two = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let gives_up = enter(&one, 2);
        until_nodes(&one, 1).await;
        let writes = |request: &Request| matches!(request.op(), OpCode::Create2 | OpCode::Multi);
        let opening = proxy.add(Rule::on_any().path(|path| path.ends_with("/ready")).when(writes).hold());
        let late = enter(&two, 2);
        soon(opening.fired()).await;
        gives_up.abort();
        until_nodes(&one, 1).await;
        let before = proxy.trace().len();
        proxy.heal().await.unwrap();
        proxy.until(|trace| {
            trace[before..].iter().any(|frame| frame.is_reply(OpCode::Create2) || frame.is_reply(OpCode::Multi))
        }).await;
        for _ in 0..5 {
            // The sync follows everything that the member sends next.
            soon(two.sync("/")).await.unwrap();
        }
        assert!(!late.is_finished(), "a member entered alone");
        let entered = soon(barrier(&one, 2).enter()).await.unwrap();
        drop((entered, soon(late).await.unwrap().unwrap()));
    }

    async fn a_barrier_opens_although_a_surplus_member_has_left(backend: Backend) {
        let server = backend.start().await;
        let (one, proxy) = (connect(&server).await, server.proxy().await);
        let two = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let opens = |request: &Request| request.op() == OpCode::Multi;
        let opening = proxy.add(Rule::on_any().path(|path| path.ends_with("/ready")).when(opens).hold());
        // The other members are nodes of another client. They do not check the barrier and never open it.
        let ids = ["00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"];
        let members = ids.map(|id| format!("{PATH}/{id}"));
        one.create(&members[0], "", CreateMode::Ephemeral).await.unwrap();
        one.create(&members[1], "", CreateMode::Ephemeral).await.unwrap();
        let late = enter(&two, 2);
        soon(opening.fired()).await;
        one.delete(&members[0], None).await.unwrap();
        proxy.heal().await.unwrap();
        drop(soon(late).await.unwrap().unwrap());
    }

    async fn a_late_close_does_not_affect_a_later_round(backend: Backend) {
        let server = backend.start().await;
        let (two, three, proxy) = (connect(&server).await, connect(&server).await, server.proxy().await);
        let one = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let alone = soon(barrier(&one, 1).enter()).await.unwrap();
        let own = alone.path().to_owned();
        let removes = |request: &Request| matches!(request.op(), OpCode::Delete | OpCode::Multi);
        let closing = proxy.add(Rule::on_any().path(|path| path.ends_with("/ready")).when(removes).hold());
        let leaving = tokio::spawn(alone.leave());
        soon(closing.fired()).await;
        // Other members may arrive after this one has left or was deleted.
        if let Err(error) = two.delete(&own, None).await {
            assert_eq!(error.kind(), ErrorKind::NoNode);
        }
        let both = async || {
            let doors = (barrier(&two, 2), barrier(&three, 2));
            let (first, second) = tokio::join!(doors.0.enter(), doors.1.enter());
            (first.unwrap(), second.unwrap())
        };
        // The next round opens the barrier over the old `ready` and closes it. The round after that opens it
        // again.
        let (first, second) = soon(both()).await;
        let (left, also) = soon(async { tokio::join!(first.leave(), second.leave()) }).await;
        left.and(also).unwrap();
        until_nodes(&two, 0).await;
        let inside = soon(both()).await;
        proxy.heal().await.unwrap();
        soon(leaving).await.unwrap().unwrap();
        soon(two.sync("/")).await.unwrap();
        let ready = soon(two.exists(&format!("{PATH}/ready"))).await.unwrap();
        assert_eq!(ready.map(|stat| stat.version), Some(0), "ready was deleted with members inside");
        drop(inside);
    }

    async fn foreign_children_do_not_count_and_curators_members_do(backend: Backend) {
        let server = backend.start().await;
        let (client, curator) = (connect(&server).await, connect(&server).await);
        for name in ["foo", "lock-0000000001"] {
            curator.create(&format!("{PATH}/{name}"), "", CreateMode::Persistent).await.unwrap();
        }
        let waiting = enter(&client, 2);
        until_nodes(&client, 3).await;
        assert!(!waiting.is_finished());
        let ready = format!("{PATH}/ready");
        assert!(soon(client.exists(&ready)).await.unwrap().is_none(), "a foreign node must not count as a member");
        // Curator's member creates its node, counts, and admits all members.
        let member = format!("{PATH}/9a794062-0b31-421c-9cfe-0699f14437da");
        curator.create(&member, "127.0.0.1", CreateMode::Ephemeral).await.unwrap();
        if let Err(error) = curator.create(&ready, "127.0.0.1", CreateMode::Persistent).await {
            assert_eq!(error.kind(), ErrorKind::NodeExists, "expected that ready exists");
        }
        let entered = soon(waiting).await.unwrap().unwrap();
        let leaving = tokio::spawn(entered.leave());
        docent_tests::pause().await;
        assert!(!leaving.is_finished());
        curator.delete(&member, None).await.unwrap();
        soon(leaving).await.unwrap().unwrap();
    }

    async fn a_ready_node_of_a_crashed_round_admits_no_member(backend: Backend) {
        let server = backend.start().await;
        let (one, two) = (connect(&server).await, connect(&server).await);
        one.create(&format!("{PATH}/ready"), "", CreateMode::Persistent).await.unwrap();
        let waiting = enter(&one, 2);
        until_nodes(&one, 2).await;
        let late = soon(tokio::time::timeout(Duration::from_millis(200), async { while !waiting.is_finished() { docent_tests::pause().await } })).await;
        assert!(late.is_err(), "one of two members entered");
        let second = soon(barrier(&two, 2).enter()).await.unwrap();
        let first = soon(waiting).await.unwrap().unwrap();
        let (left, also) = soon(async { tokio::join!(first.leave(), second.leave()) }).await;
        left.and(also).unwrap();
        until_nodes(&one, 0).await;
    }

    async fn a_member_is_admitted_although_ready_is_deleted_before_it_is_read(backend: Backend) {
        let server = backend.start().await;
        let (kazoo, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let (member, ready) = (format!("{PATH}/8eb6557ec51a32d1e0cb91e4d5e9a5c5"), format!("{PATH}/ready"));
        let is_ready = |path: &str| path.ends_with("/ready");
        let checked_ready = |frame: &Traced| frame.is_reply(OpCode::Exists) && frame.path.as_deref().is_some_and(is_ready);
        let waiting = enter(&client, 2);
        soon(proxy.until(|trace| trace.iter().any(checked_ready))).await;
        let read = proxy.add(Rule::on(OpCode::GetData).path(is_ready).hold());
        // When it leaves, kazoo's member first deletes `ready`, and then usually its own node.
        kazoo.create(&member, "python-1", CreateMode::Ephemeral).await.unwrap();
        kazoo.create(&ready, "", CreateMode::Persistent).await.unwrap();
        soon(read.fired()).await;
        kazoo.delete(&ready, None).await.unwrap();
        kazoo.delete(&member, None).await.unwrap();
        proxy.heal().await.unwrap();
        let entered = soon(waiting).await.unwrap().unwrap();
        soon(entered.leave()).await.unwrap();
        until_nodes(&kazoo, 0).await;
    }

    async fn members_that_leave_after_the_first_has_crashed_leave_no_ready(backend: Backend) {
        let server = backend.start().await;
        let (stays, crashes) = (connect(&server).await, connect(&server).await);
        // The first member by name leaves last and would delete `ready`.
        let first = format!("{PATH}/00000000-0000-4000-8000-000000000000");
        crashes.create(&first, "", CreateMode::Ephemeral).await.unwrap();
        let entered = soon(barrier(&stays, 2).enter()).await.unwrap();
        let leaving = tokio::spawn(entered.leave());
        until_nodes(&crashes, 2).await;
        assert!(!leaving.is_finished());
        server.expire(crashes.session_id().unwrap()).await.unwrap();
        soon(leaving).await.unwrap().unwrap();
        until_nodes(&stays, 0).await;
    }

    async fn a_lost_link_or_a_new_session_admits_no_member(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let member = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let other = connect(&server).await;
        let waiting = enter(&member, 2);
        until_nodes(&other, 1).await;
        proxy.reset().await;
        soon(member.sync("/")).await.unwrap();
        assert!(!waiting.is_finished());
        server.expire(member.session_id().unwrap()).await.unwrap();
        // The member's node is re-created, and the next arriving member is the second.
        let entered = soon(barrier(&other, 2).enter()).await.unwrap();
        let also = soon(waiting).await.unwrap().unwrap();
        let (left, right) = soon(async { tokio::join!(entered.leave(), also.leave()) }).await;
        left.and(right).unwrap();
    }

    async fn a_member_that_crashes_inside_blocks_no_member_longer_than_its_session(backend: Backend) {
        let server = backend.start().await;
        let (stays, crashes) = (connect(&server).await, connect(&server).await);
        let waiting = enter(&stays, 2);
        let crashing = soon(barrier(&crashes, 2).enter()).await.unwrap();
        let entered = soon(waiting).await.unwrap().unwrap();
        let leaving = tokio::spawn(entered.leave());
        soon(crashes.close()).await;
        soon(leaving).await.unwrap().unwrap();
        drop(crashing);
    }

    async fn a_member_whose_session_ends_inside_blocks_no_member_and_does_not_count_for_the_next_round(backend: Backend) {
        let server = backend.start().await;
        let (stays, loses, newcomer) = (connect(&server).await, connect(&server).await, connect(&server).await);
        let waiting = enter(&stays, 2);
        let inside = soon(barrier(&loses, 2).enter()).await.unwrap();
        let entered = soon(waiting).await.unwrap().unwrap();
        server.expire(loses.session_id().unwrap()).await.unwrap();
        // When this is answered, the client has its next session.
        while soon(loses.sync("/")).await.is_err() {}
        soon(entered.leave()).await.unwrap();
        let waiting = enter(&stays, 2);
        until_nodes(&newcomer, 1).await;
        for _ in 0..5 {
            // The sync follows everything that the waiter sends.
            soon(stays.sync("/")).await.unwrap();
        }
        assert!(!waiting.is_finished(), "one of two members entered");
        let second = soon(barrier(&newcomer, 2).enter()).await.unwrap();
        let first = soon(waiting).await.unwrap().unwrap();
        // After the first round has left, members of the next round do not affect the member that is still
        // inside.
        let (left, also) = soon(async { tokio::join!(first.leave(), second.leave()) }).await;
        left.and(also).unwrap();
        soon(inside.leave()).await.unwrap();
        until_nodes(&newcomer, 0).await;
    }

    async fn a_waiting_member_outlasts_an_outage_longer_than_its_session_and_operations(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let patience = Duration::from_secs(2);
        let settings = builder(&server, proxy.connect_string());
        let member = settings.session_timeout(SHORT_SESSION).operation_timeout(patience).connect().await.unwrap();
        let other = connect(&server).await;
        let waiting = enter(&member, 2);
        // The client is a member and knows it.
        let reads_ready = |path: &String| path.ends_with("/ready");
        proxy.until(|trace| trace.iter().any(|frame| frame.path.as_ref().is_some_and(reads_ready))).await;
        let mut state = member.state();
        proxy.cut().await;
        until_nodes(&other, 0).await;
        // The client gives up the session, and then the request that it sends in the next session.
        soon(async { while state.changed().await.unwrap() != ConnectionState::Lost {} }).await;
        for _ in 0..2 {
            assert_eq!(soon(member.exists(PATH)).await.unwrap_err().kind(), ErrorKind::Timeout);
        }
        proxy.heal().await.unwrap();
        let entered = soon(barrier(&other, 2).enter()).await.unwrap();
        let also = soon(waiting).await.unwrap().unwrap();
        let (left, right) = soon(async { tokio::join!(entered.leave(), also.leave()) }).await;
        left.and(right).unwrap();
    }

    async fn bad_input_is_refused_with_value_and_rule(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for (path, members, text) in [
            (PATH, 0, "members 0 must be at least 1"),
            ("work", 2, "\"work\" must start with '/'"),
            ("/", 2, "must not be the root"),
        ] {
            let error = DoubleBarrier::new(&client, path, members).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
