//! Observers of an election's leaders.

use crate::candidate::{ELECTION, election, until_candidates};
use docent::election::Leaders;
use docent::node::{Acl, Permissions};
use docent::{Client, CreateMode, Election, ErrorKind};
use docent_battery::{Backend, Direction, FrameKind, Proxy, Rule, TestServer, both_backends};
use docent_proto::{Code, OpCode};
use docent_tests::{builder, connect, soon, within};
use futures_util::{FutureExt, StreamExt};
use std::time::Duration;

async fn observer(server: &TestServer) -> (Client, Proxy, Leaders) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    let leaders = election(&client).observe();
    (client, proxy, leaders)
}

fn named(client: &Client, id: &str) -> Election {
    Election::builder(client, ELECTION).id(id).build().unwrap()
}

/// Returns the id of the next leader, or `None` while there is no candidate.
async fn next(leaders: &mut Leaders) -> Option<String> {
    soon(leaders.next()).await.expect("the client is open").unwrap().map(|leader| leader.id)
}

both_backends! {
    async fn an_observer_sees_each_leader_and_none_in_between(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (_observer, _proxy, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await, None);
        for id in ["a", "b"] {
            let leadership = soon(named(&client, id).campaign()).await.unwrap();
            let leader = soon(leaders.next()).await.unwrap().unwrap().unwrap();
            assert_eq!((leader.id.as_str(), leader.fence), (id, leadership.fence()));
            assert_eq!(Some(leader.session_id), client.session_id());
            assert_eq!(Some(leader), soon(election(&client).leader()).await.unwrap());
            soon(leadership.resign()).await.unwrap();
            assert_eq!(next(&mut leaders).await, None);
        }
        // One leader follows another without a gap.
        let first = soon(named(&client, "c").campaign()).await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("c"));
        let second = tokio::spawn(named(&client, "d").campaign());
        until_candidates(&election(&client), 2).await;
        soon(first.resign()).await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("d"));
        let _leads = soon(second).await.unwrap().unwrap();
    }

    async fn a_slow_observer_gets_the_last_leader(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (_observer, _proxy, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await, None);
        for id in ["a", "b", "c"] {
            soon(soon(named(&client, id).campaign()).await.unwrap().resign()).await.unwrap();
        }
        let _leads = soon(named(&client, "d").campaign()).await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("d"));
        assert!(leaders.next().now_or_never().is_none());
    }

    async fn candidates_that_join_and_leave_wake_no_observer_and_an_observer_wakes_no_candidate(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let leadership = soon(named(&client, "a").campaign()).await.unwrap();
        let (_observer, proxy, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await.as_deref(), Some("a"));
        let before = proxy.trace().len();
        for _ in 0..5 {
            let campaign = tokio::spawn(named(&client, "b").campaign());
            until_candidates(&election(&client), 2).await;
            campaign.abort();
            until_candidates(&election(&client), 1).await;
        }
        assert!(leaders.next().now_or_never().is_none());
        // The reply to a read arrives after all earlier events.
        soon(_observer.get("/")).await.unwrap();
        let trace = proxy.trace();
        let events_or_errors = trace[before..].iter().filter(|frame| frame.kind == FrameKind::Event).count();
        let requests = trace[before..].iter().filter(|frame| {
            frame.is_request(OpCode::GetChildren2) || frame.is_request(OpCode::Exists)
        }).count();
        assert_eq!((events_or_errors, requests), (0, 0));
        // The observer has created no node, so no candidate waits for it.
        assert_eq!(client.children(ELECTION).await.unwrap().names.len(), 1);
        soon(leadership.resign()).await.unwrap();
        assert_eq!(next(&mut leaders).await, None);
    }

    async fn an_observer_survives_lost_links_and_sessions(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (observing, proxy, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await, None);
        // There is no candidate, and one joins while the observer's session is expired.
        proxy.cut().await;
        server.expire(observing.session_id().unwrap()).await.unwrap();
        let first = soon(named(&client, "a").campaign()).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("a"));
        // The leader changes while the link is cut.
        proxy.cut().await;
        soon(first.resign()).await.unwrap();
        let second = soon(named(&client, "b").campaign()).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("b"));
        // The session ends, and nothing else changes.
        let before = observing.session_id();
        server.expire(before.unwrap()).await.unwrap();
        soon(async {
            while leaders.next().now_or_never().is_none() && observing.session_id() == before {
                docent_tests::pause().await;
            }
        }).await;
        soon(second.resign()).await.unwrap();
        assert_eq!(next(&mut leaders).await, None);
    }

    async fn reading_the_line_takes_no_longer_than_one_operation(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = (connect(&server).await, server.proxy().await);
        let _leads = soon(named(&client, "a").campaign()).await.unwrap();
        let impatient = builder(&server, proxy.connect_string()).connect().await.unwrap();
        proxy.set_delay(Direction::ToServer, Duration::from_millis(400));
        // The line is listed within the timeout, but its candidates cannot be read within it.
        let impatient = election(&impatient.with_operation_timeout(Duration::from_millis(600)));
        assert_eq!(soon(impatient.leader()).await.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(soon(impatient.candidates()).await.unwrap_err().kind(), ErrorKind::Timeout);
    }

    async fn observers_end_when_the_client_is_closed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (first, _proxy, mut unborn) = observer(&server).await;
        assert_eq!(next(&mut unborn).await, None);
        let _leads = soon(named(&client, "a").campaign()).await.unwrap();
        let (second, _second, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await.as_deref(), Some("a"));
        let fresh = election(&second).observe();
        soon(first.close()).await;
        soon(second.close()).await;
        assert!(soon(leaders.next()).await.is_none());
        assert_eq!((soon(unborn.count()).await, soon(fresh.count()).await), (0, 0));
        assert_eq!(soon(election(&second).wait_for_leader()).await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn an_observer_without_permission_ends_immediately_when_the_client_is_closed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create(ELECTION, "", CreateMode::Persistent).await.unwrap();
        client.set_acl(ELECTION, [Acl::digest("somebody", "else", Permissions::ALL)], None).await.unwrap();
        let (observing, proxy, leaders) = observer(&server).await;
        let leaders = tokio::spawn(leaders.collect::<Vec<_>>());
        proxy.until(|trace| trace.iter().any(|frame| frame.code == Some(Code::NO_AUTH))).await;
        soon(observing.sync("/")).await.unwrap();
        // The observer would retry after a second at the earliest.
        let events_or_errors = within(Duration::from_millis(500), async {
            observing.close().await;
            leaders.await.unwrap()
        }).await;
        assert_eq!(events_or_errors.len(), 1, "{events_or_errors:?}");
    }

    async fn an_observer_without_permission_gets_the_error(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create(ELECTION, "", CreateMode::Persistent).await.unwrap();
        let hidden = Permissions::CREATE | Permissions::DELETE | Permissions::ADMIN;
        client.set_acl(ELECTION, [Acl::new(hidden, "world", "anyone")], None).await.unwrap();
        let (_observer, _proxy, mut leaders) = observer(&server).await;
        let error = within(Duration::from_secs(5), leaders.next()).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some(ELECTION)));
        assert_eq!(soon(election(&client).wait_for_leader()).await.unwrap_err().kind(), ErrorKind::NoAuth);
        // The error is reported once, and the observer keeps trying.
        assert!(tokio::time::timeout(Duration::from_millis(1500), leaders.next()).await.is_err());
        client.set_acl(ELECTION, [Acl::open_unsafe()], None).await.unwrap();
        assert_eq!(next(&mut leaders).await, None);
        let _leads = soon(named(&client, "a").campaign()).await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("a"));
    }

    async fn wait_for_leader_returns_the_first_leader(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (observing, proxy, _leaders) = observer(&server).await;
        let observing = election(&observing.with_operation_timeout(Duration::from_millis(200)));
        let mut waiting = Box::pin(observing.wait_for_leader());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        // The call waits until the outage ends.
        proxy.cut().await;
        assert!(tokio::time::timeout(Duration::from_millis(600), &mut waiting).await.is_err());
        proxy.heal().await.unwrap();
        let leadership = soon(named(&client, "a").campaign()).await.unwrap();
        let leader = soon(waiting).await.unwrap();
        assert_eq!((leader.id.as_str(), leader.fence), ("a", leadership.fence()));
        assert_eq!(soon(election(&client).wait_for_leader()).await.unwrap(), leader);
    }

    async fn a_leader_proclaims_other_data_while_it_leads_and_not_afterwards(backend: Backend) {
        let server = backend.start().await;
        let (client, admin) = (connect(&server).await, connect(&server).await);
        let (_observer, _proxy, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await, None);
        let election = named(&client, "a");
        let leadership = soon(election.campaign()).await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("a"));
        soon(leadership.proclaim("a:2")).await.unwrap();
        let leader = soon(leaders.next()).await.unwrap().unwrap().unwrap();
        assert_eq!((leader.id.as_str(), leader.fence), ("a:2", leadership.fence()));
        assert_eq!(soon(election.leader()).await.unwrap(), Some(leader));
        soon(leadership.verify()).await.unwrap();
        let large = soon(leadership.proclaim(vec![0; 2_000_000])).await.unwrap_err();
        assert_eq!(large.kind(), ErrorKind::TooLarge);
        // When the node is deleted, the leadership is lost, and `proclaim` fails.
        let path = leadership.path();
        admin.delete(&path, None).await.unwrap();
        let lost = soon(leadership.proclaim("a:3")).await.unwrap_err();
        // The event of the deletion may arrive while the request is in flight.
        assert!(lost.is_lost() || lost.kind() == ErrorKind::OutcomeUnknown, "{lost}");
        soon(leadership.lost()).await;
        let lost = soon(leadership.proclaim("a:4")).await.unwrap_err();
        assert!(lost.is_lost(), "{lost}");
        assert!(admin.exists(&path).await.unwrap().is_none());
        drop(leadership);
        assert_eq!(next(&mut leaders).await, None);
        let _again = soon(election.campaign()).await.unwrap();
        assert_eq!(next(&mut leaders).await.as_deref(), Some("a"), "the next leadership has its initial data again");
    }

    async fn a_proclamation_whose_reply_is_lost_is_applied_once(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let leadership = soon(named(&client, "a").campaign()).await.unwrap();
        let swallowed = proxy.add(Rule::on(OpCode::Multi).path(|path| path.contains("latch-")).swallow_reply());
        soon(leadership.proclaim("a:2")).await.unwrap();
        soon(swallowed.fired()).await;
        let node = soon(client.get(&leadership.path())).await.unwrap();
        assert_eq!((node.data, node.stat.version), ("a:2".into(), 1));
    }

    async fn an_observer_that_is_dropped_leaves_no_watch(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (observing, proxy, mut leaders) = observer(&server).await;
        assert_eq!(next(&mut leaders).await, None);
        drop(leaders);
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::RemoveWatches))).await;
        let before = proxy.trace().len();
        let _leads = soon(named(&client, "a").campaign()).await.unwrap();
        soon(observing.sync("/")).await.unwrap();
        assert!(proxy.trace()[before..].iter().all(|frame| frame.kind != FrameKind::Event));
    }
}
