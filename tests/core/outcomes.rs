//! Outcomes of writes whose reply is lost.

use crate::{both_backends, builder, connect};
use docent::node::Acl;
use docent::{Client, ConnectionState, CreateMode, ErrorKind};
use docent_battery::{Backend, Direction, Flow, Proxy, Rule, TestServer, Traced};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, own_nodes, soon, while_progressing};
use futures_util::future::join_all;
use std::num::NonZeroU32;
use std::time::Duration;

async fn client(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    (client, proxy)
}

async fn counter(client: &Client, path: &str) -> (u64, i32) {
    let node = soon(client.get(path)).await.unwrap();
    (std::str::from_utf8(&node.data).unwrap().parse().unwrap(), node.stat.version)
}

/// Adds one by compare-and-set and returns the number of attempts.
async fn increment(client: &Client, path: &str) {
    loop {
        let (value, version) = counter(client, path).await;
        let add = client.transaction().set(path, (value + 1).to_string(), version);
        match soon(add.commit_exactly()).await {
            Ok(_) => return,
            Err(error) if error.kind() == ErrorKind::BadVersion => {}
            Err(error) => panic!("{error}"),
        }
    }
}

both_backends! {
    async fn counters_incremented_by_exact_writes_are_exact_under_lost_replies(backend: Backend) {
        let server = backend.start().await;
        let clients = [client(&server).await, client(&server).await];
        let first = &clients[0].0;
        first.create("/counter", "0", CreateMode::Persistent).await.unwrap();
        let work = clients.iter().map(|(client, proxy)| {
            async move {
                for n in 0..1_000 {
                    if n % 40 == 0 {
                        // The write is applied and the reply is lost, or the write never arrives.
                        let on_multi = Rule::on(OpCode::Multi);
                        proxy.add(if n % 80 == 0 { on_multi.reset_after() } else { on_multi.reset_before() });
                    }
                    increment(client, "/counter").await;
                }
            }
        });
        let frames = || clients.iter().map(|(_, proxy)| proxy.trace().len()).sum();
        while_progressing(frames, join_all(work)).await;
        assert_eq!(counter(first, "/counter").await.0, 2_000);
        let markers = own_nodes(first).await;
        assert!(markers.len() <= 2, "one marker for each session: {markers:?}");
    }

    async fn an_unversioned_set_without_a_reply_is_reported_as_unknown(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        client.create("/a", "0", CreateMode::Persistent).await.unwrap();
        for applied in [true, false] {
            let rule = Rule::on(OpCode::SetData);
            proxy.add(if applied { rule.reset_after() } else { rule.reset_before() });
            let error = soon(client.set("/a", "1", None)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        }
    }

    async fn a_transaction_without_a_reply_is_unknown_and_an_exact_one_is_resolved(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        client.create("/a", "0", CreateMode::Persistent).await.unwrap();
        let write = |data: &'static str| client.transaction().set("/a", data, None);
        proxy.add(Rule::on(OpCode::Multi).reset_after());
        assert_eq!(soon(write("1").commit()).await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        proxy.add(Rule::on(OpCode::Multi).reset_after());
        assert_eq!(soon(write("2").commit_exactly()).await.unwrap(), None, "the results must be lost");
        proxy.add(Rule::on(OpCode::Multi).reset_before());
        assert_eq!(soon(write("3").commit_exactly()).await.unwrap().unwrap().len(), 1);
        let node = client.get("/a").await.unwrap();
        assert_eq!((node.data.as_ref(), node.stat.version), (b"3".as_ref(), 3));
    }

    async fn an_exact_write_survives_the_loss_of_its_markers_folder_at_any_moment(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        let other = connect(&server).await;
        client.create("/a", "0", CreateMode::Persistent).await.unwrap();
        let on_marker = || Rule::on(OpCode::Create2).path(|path| path.contains("/_docent/"));
        // The client sends the folder's create together with the second create. The test deletes the folder
        // before the second create arrives, as the servers may do with an empty container at any time.
        let held = proxy.add(on_marker().nth(2).hold());
        let write = tokio::spawn(client.transaction().set("/a", "1", None).commit_exactly());
        soon(held.fired()).await;
        proxy.set_throttle(Direction::ToServer, NonZeroU32::new(200));
        proxy.set_flow(Direction::ToServer, Flow::Pass);
        let folder = async {
            while other.children("/_docent").await.map_or(0, |folder| folder.names.len()) == 0 {}
            for session in other.children("/_docent").await.unwrap().names {
                while other.delete(&format!("/_docent/{session}"), None).await.is_err() {
                    docent_tests::pause().await;
                }
            }
        };
        soon(folder).await;
        proxy.set_throttle(Direction::ToServer, None);
        assert_eq!(soon(write).await.unwrap().unwrap().map(|results| results.len()), Some(1));
        assert_eq!(client.get("/a").await.unwrap().stat.version, 1);
    }

    async fn an_exact_write_whose_session_ends_with_the_reply_is_unknown(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        client.create("/a", "0", CreateMode::Persistent).await.unwrap();
        soon(client.transaction().set("/a", "1", None).commit_exactly()).await.unwrap();
        let lost = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
        let write = tokio::spawn(client.transaction().set("/a", "2", None).commit_exactly());
        soon(lost.fired()).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert_eq!(soon(write).await.unwrap().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    }

    async fn requests_in_flight_when_a_session_is_abandoned_are_unknown(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        client.create("/a", "0", CreateMode::Persistent).await.unwrap();
        // Creates the markers of both writes.
        let first = client.transaction().set("/a", "1", None).commit_exactly();
        let second = client.transaction().set("/a", "1", None).commit_exactly();
        let (first, second) = soon(async { tokio::join!(first, second) }).await;
        first.unwrap();
        second.unwrap();
        let session = client.session_id().unwrap();
        // Both writes are sent, and all replies are lost.
        proxy.set_flow(Direction::ToClient, Flow::Swallow);
        let before = proxy.trace().len();
        let write = tokio::spawn(client.transaction().set("/a", "2", None).commit_exactly());
        let ephemeral = client.clone();
        let create = tokio::spawn(async move { ephemeral.create("/ephemeral", "", CreateMode::Ephemeral).await });
        let sent = |trace: &[Traced], path: &str| {
            trace[before..].iter().any(|frame| frame.is_request(OpCode::Multi) && frame.path.as_ref().is_some_and(|sent| sent.ends_with(path)))
        };
        proxy.until(|trace| sent(trace, "/a") && sent(trace, "/ephemeral")).await;
        proxy.cut().await;
        // The servers keep the session, so its end proves nothing.
        let _alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        for error in [soon(write).await.unwrap().unwrap_err(), soon(create).await.unwrap().unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
            assert!(error.may_have_applied() && !error.is_retryable());
        }
    }

    async fn a_versioned_set_is_sent_again_only_if_the_version_is_unchanged(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        let other = connect(&server).await;
        client.create("/a", "0", CreateMode::Persistent).await.unwrap();
        proxy.add(Rule::on(OpCode::SetData).reset_before());
        assert_eq!(soon(client.set("/a", "1", 0)).await.unwrap().version, 1);
        // Applied. The client cannot distinguish its write from the same change by another client.
        proxy.add(Rule::on(OpCode::SetData).reset_after());
        assert_eq!(soon(client.set("/a", "2", 1)).await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        // Not applied, and another client wrote first.
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        other.set("/a", "3", 2).await.unwrap();
        proxy.heal().await.unwrap();
        proxy.add(Rule::on(OpCode::SetData).reset_before());
        assert_eq!(soon(client.set("/a", "4", 2)).await.unwrap_err().kind(), ErrorKind::BadVersion);
    }

    async fn a_delete_without_a_reply_is_not_resent_and_reported_as_unknown(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        // The delete may be applied at any later time. A second delete could remove another client's node.
        proxy.add(Rule::on(OpCode::Delete).reset_before());
        assert_eq!(soon(client.delete("/a", None)).await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        assert!(client.exists("/a").await.unwrap().is_some());
        proxy.add(Rule::on(OpCode::Delete).reset_after());
        assert_eq!(soon(client.delete("/a", None)).await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        for applied in [false, true] {
            client.create("/a", "", CreateMode::Persistent).await.unwrap();
            let rule = Rule::on(OpCode::Multi);
            proxy.add(if applied { rule.reset_after() } else { rule.reset_before() });
            soon(client.ensure_absent("/a")).await.unwrap();
            assert_eq!(client.exists("/a").await.unwrap(), None);
        }
        soon(client.ensure_absent("/a")).await.unwrap();
    }

    async fn a_delete_leaves_a_node_alone_that_another_client_created_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        let other = connect(&server).await;
        for applied in [true, false] {
            client.ensure_absent("/a").await.unwrap();
            client.create("/a", "ours", CreateMode::Persistent).await.unwrap();
            let rule = Rule::on(OpCode::Multi);
            proxy.add(if applied { rule.reset_after() } else { rule.reset_before() });
            // The client is about to resolve the outcome of its delete.
            let looks = proxy.add(Rule::on(OpCode::Multi).hold());
            let client = client.clone();
            let deleted = tokio::spawn(async move { client.ensure_absent("/a").await });
            soon(looks.fired()).await;
            soon(other.ensure_absent("/a")).await.unwrap();
            soon(other.create("/a", "theirs", CreateMode::Persistent)).await.unwrap();
            proxy.heal().await.unwrap();
            soon(deleted).await.unwrap().unwrap();
            assert_eq!(soon(other.get("/a")).await.unwrap().data, "theirs");
        }
    }

    async fn changes_that_other_clients_may_have_made_are_unknown_after_a_lost_reply(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        for applied in [true, false] {
            let lose = |op| {
                let rule = Rule::on(op);
                proxy.add(if applied { rule.reset_after() } else { rule.reset_before() });
            };
            lose(OpCode::SetAcl);
            let error = soon(client.set_acl("/a", [Acl::open_unsafe()], None)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
            lose(OpCode::Create2);
            let error = soon(client.create("/a/n-", "", CreateMode::PersistentSequential)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        }
        assert_eq!(client.acl("/a").await.unwrap().stat.aversion, 1, "the write was sent again");
        assert_eq!(client.children("/a").await.unwrap().names, ["n-0000000000"]);
    }

    async fn one_deadline_applies_to_all_steps_of_ensuring_absence(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        // The timeout suffices for the read before the delete, but not for both requests.
        proxy.set_delay(Direction::ToServer, Duration::from_millis(600));
        let hurried = client.with_operation_timeout(Duration::from_secs(1));
        let error = soon(hurried.ensure_absent("/a")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        proxy.set_delay(Direction::ToServer, Duration::ZERO);
        soon(client.ensure_absent("/a")).await.unwrap();
    }

    async fn an_ephemeral_create_recognises_its_own_node_after_a_lost_reply(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = client(&server).await;
        proxy.add(Rule::on(OpCode::Multi).reset_after());
        let created = soon(client.create("/a", "x", CreateMode::Ephemeral)).await.unwrap();
        assert_eq!(created.stat.owner, client.session_id());
        // A node that already existed is not mistaken for the new one.
        proxy.add(Rule::on(OpCode::Multi).reset_after());
        let error = soon(client.create("/a", "y", CreateMode::Ephemeral)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NodeExists);
        proxy.add(Rule::on(OpCode::Create2).reset_after());
        let error = soon(client.create("/b", "x", CreateMode::Persistent)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "the outcome must be unknown");
    }

    async fn operations_bound_to_a_session_are_not_applied_in_the_next(backend: Backend) {
        let server = backend.start().await;
        let (client, _proxy) = client(&server).await;
        let bound = client.in_this_session();
        soon(bound.create("/a", "", CreateMode::Ephemeral)).await.unwrap();
        let session = client.session_id();
        server.expire(session.unwrap()).await.unwrap();
        let write = soon(bound.create("/b", "", CreateMode::Ephemeral)).await.unwrap_err();
        assert!(matches!(write.kind(), ErrorKind::SessionChanged), "{write}");
        soon(client.create("/c", "", CreateMode::Ephemeral)).await.unwrap();
        assert_eq!(soon(bound.exists("/c")).await.unwrap_err().kind(), ErrorKind::SessionChanged);
    }
}
