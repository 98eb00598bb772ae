//! Kept nodes.

use crate::{both_backends, builder, connect};
use docent::locks::MutexGuard;
use docent::node::Acl;
use docent::recipe::{KeptNode, KeptStatus, ReadChoice, Shown};
use docent::{Client, ConnectionState, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, KeptAlive, Proxy, Rule, TestServer};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, own_nodes, soon, until};
use std::time::Duration;

/// Others choose by these words.
const CHOICE: ReadChoice = |found, _| match found {
    b"off" => Some(Shown::FinalData),
    b"on" => Some(Shown::Data),
    _ => None,
};

/// Waits until the node at `path` has `data` and belongs to the current session of `client`.
async fn until_kept(client: &Client, other: &Client, path: &str, data: &str) {
    soon(async {
        loop {
            if let Ok(node) = other.get(path).await
                && node.stat.owner == client.session_id()
                && node.data == data
            {
                return;
            }
            docent_tests::pause().await;
        }
    })
    .await;
}

async fn until_deleted(other: &Client, path: &str) {
    soon(async { while other.exists(path).await.unwrap().is_some() {} }).await;
}

/// A client that gave up the session that owns its node at `/a`, while the servers keep that session.
struct GivenUp {
    proxy: Proxy,
    client: Client,
    node: KeptNode,
    session: i64,
    /// While this guard of the session exists, the client does not end the session itself.
    _guard: MutexGuard,
    _alive: KeptAlive,
}

/// Runs `before`, then makes the client give up its session, and leaves the client without a link.
async fn given_up(server: &TestServer, other: &Client, before: impl AsyncFnOnce()) -> GivenUp {
    let proxy = server.proxy().await;
    let settings = builder(server, proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = settings.connect().await.unwrap();
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    let node = KeptNode::builder(&client, "/a").data("1").let_others_choose(CHOICE).start().unwrap();
    soon(node.present()).await.unwrap();
    until_kept(&client, other, "/a", "1").await;
    until(async || own_nodes(other).await.len() == 2).await;
    before().await;
    let session = client.session_id().unwrap();
    proxy.cut().await;
    let alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
    soon(client.state().reached(ConnectionState::Lost)).await;
    GivenUp { proxy, client, node, session, _guard: guard, _alive: alive }
}

/// Lets the client reach the servers again. Just before the client writes its older session's node, that
/// session ends, and a third party creates a node at the path.
async fn replaced_by_other_client(server: &TestServer, older: &GivenUp) -> Client {
    let stranger = connect(server).await;
    let touches = older.proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).hold());
    older.proxy.heal().await.unwrap();
    soon(touches.fired()).await;
    server.expire(older.session).await.unwrap();
    stranger.create("/a", "theirs", CreateMode::Ephemeral).await.unwrap();
    older.proxy.heal().await.unwrap();
    stranger
}

both_backends! {
    async fn another_clients_node_survives_the_end_of_the_older_session_during_a_replacement(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let mut older = given_up(&server, &other, async || {}).await;
        let stranger = replaced_by_other_client(&server, &older).await;
        let theirs = stranger.session_id().unwrap();
        while !matches!(older.node.status(), KeptStatus::Occupied { session_id } if session_id == theirs) {
            assert!(!matches!(older.node.status(), KeptStatus::Present { .. }), "the other client's node was replaced");
            soon(older.node.changed()).await;
        }
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
        soon(stranger.close()).await;
        until_kept(&older.client, &other, "/a", "1").await;
    }

    async fn another_clients_node_survives_the_end_of_the_older_session_during_a_removal(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let mut older = given_up(&server, &other, async || {}).await;
        // From now on the node should be absent.
        let node = std::mem::replace(&mut older.node, KeptNode::new(&older.client, "/b", "").unwrap());
        let removed = tokio::spawn(node.remove());
        docent_tests::pause().await;
        let _stranger = replaced_by_other_client(&server, &older).await;
        soon(removed).await.unwrap().unwrap();
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
    }

    async fn a_node_of_an_older_session_without_a_witness_is_taken_over_when_that_session_ends(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let forget = async || {
            for name in own_nodes(&other).await {
                other.delete(&name, None).await.unwrap();
            }
        };
        let mut older = given_up(&server, &other, forget).await;
        older.proxy.heal().await.unwrap();
        while !matches!(older.node.status(), KeptStatus::Occupied { session_id } if session_id == older.session) {
            soon(older.node.changed()).await;
        }
        assert_eq!(other.get("/a").await.unwrap().stat.owner, Some(older.session));
        server.expire(older.session).await.unwrap();
        until_kept(&older.client, &other, "/a", "1").await;
    }

    async fn a_kept_node_is_present_until_it_is_removed_or_dropped(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/group/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        until_kept(&client, &other, "/group/a", "1").await;
        node.set("2");
        until_kept(&client, &other, "/group/a", "2").await;
        soon(node.remove()).await.unwrap();
        assert_eq!(other.exists("/group/a").await.unwrap(), None);
        let node = KeptNode::new(&client, "/group/a", "3").unwrap();
        soon(node.present()).await.unwrap();
        drop(node);
        until_deleted(&other, "/group/a").await;
    }

    async fn another_client_chooses_between_the_data_and_the_final_data(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::builder(&client, "/a").data("1").let_others_choose(CHOICE).start().unwrap();
        node.set_final_data(Some(("1 off".into(), Duration::ZERO)));
        soon(node.present()).await.unwrap();
        let write = async |data: &str| {
            other.set("/a", data.to_owned(), None).await.unwrap();
        };
        write("neither").await;
        until_kept(&client, &other, "/a", "1").await;
        assert_eq!(node.shown(), Shown::Data);
        write("off").await;
        until_kept(&client, &other, "/a", "1 off").await;
        assert_eq!(node.shown(), Shown::FinalData);
        // The choice lasts, whatever this client or another one writes, and in later sessions.
        node.set_final_data(Some(("2 off".into(), Duration::ZERO)));
        node.set("2");
        soon(node.present()).await.unwrap();
        until_kept(&client, &other, "/a", "2 off").await;
        write("neither").await;
        until_kept(&client, &other, "/a", "2 off").await;
        other.delete("/a", None).await.unwrap();
        until_kept(&client, &other, "/a", "2 off").await;
        let session = client.session_id();
        server.expire(session.unwrap()).await.unwrap();
        until(async || client.session_id() != session).await;
        until_kept(&client, &other, "/a", "2 off").await;
        write("on").await;
        until_kept(&client, &other, "/a", "2").await;
        assert_eq!(node.shown(), Shown::Data);
        // A new handle knows no choice.
        write("off").await;
        until_kept(&client, &other, "/a", "2 off").await;
        drop(node);
        let next = KeptNode::builder(&client, "/a").data("3").take_over().let_others_choose(CHOICE).start().unwrap();
        until_kept(&client, &other, "/a", "3").await;
        assert_eq!(next.shown(), Shown::Data);
    }

    async fn a_choice_is_followed_if_the_client_gave_up_the_session_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let older = given_up(&server, &other, async || {}).await;
        older.node.set_final_data(Some(("1 off".into(), Duration::ZERO)));
        other.set("/a", "off", None).await.unwrap();
        older.proxy.heal().await.unwrap();
        until_kept(&older.client, &other, "/a", "1 off").await;
        assert_ne!(older.client.session_id(), Some(older.session));
    }

    async fn a_change_that_is_undone_during_an_outage_is_no_choice(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let node = KeptNode::builder(&client, "/a").data("on").let_others_choose(CHOICE).start().unwrap();
        node.set_final_data(Some(("final".into(), Duration::ZERO)));
        soon(node.present()).await.unwrap();
        // After a lost link, a write follows a read.
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Suspended)).await;
        proxy.heal().await.unwrap();
        soon(client.state().reached(ConnectionState::Connected)).await;
        let unanswered = proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).cut_after());
        node.set("off");
        soon(unanswered.fired()).await;
        node.set("on");
        proxy.heal().await.unwrap();
        until_kept(&client, &other, "/a", "on").await;
        soon(node.present()).await.unwrap();
        assert_eq!(node.shown(), Shown::Data);
        assert_eq!(other.get("/a").await.unwrap().data, "on");
    }

    async fn a_kept_node_is_re_created_in_a_new_session(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        for _ in 0..3 {
            server.expire(client.session_id().unwrap()).await.unwrap();
            until_kept(&client, &other, "/a", "1").await;
        }
        assert!(matches!(node.status(), KeptStatus::Present { .. } | KeptStatus::Pending));
    }

    async fn a_node_without_re_creation_remains_and_follows_its_data_but_is_not_re_created(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mut nodes = Vec::new();
        for path in ["/deleted", "/expired"] {
            let node = KeptNode::new(&client, path, "1").unwrap();
            soon(node.present()).await.unwrap();
            node.do_not_recreate();
            node.set("2");
            until_kept(&client, &other, path, "2").await;
            nodes.push(node);
        }
        other.delete("/deleted", None).await.unwrap();
        soon(async { while !matches!(nodes[0].changed().await, Some(KeptStatus::Removed)) {} }).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(async { while !matches!(nodes[1].changed().await, Some(KeptStatus::Removed)) {} }).await;
        assert!(soon(nodes[1].changed()).await.is_none(), "no status may follow");
        for path in ["/deleted", "/expired"] {
            assert!(soon(other.exists(path)).await.unwrap().is_none());
        }
        // The paths can be used again.
        soon(KeptNode::new(&client, "/expired", "3").unwrap().present()).await.unwrap();
    }

    async fn connected_is_published_after_one_attempt_at_each_kept_node(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        let mut state = client.state();
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(async { while state.changed().await.unwrap().generation < 2 {} }).await;
        assert_eq!(state.current(), ConnectionState::Connected);
        other.sync("/").await.unwrap();
        assert_eq!(other.get("/a").await.unwrap().stat.owner, client.session_id());
    }

    async fn a_failing_kept_node_blocks_no_other_and_reports_its_error(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let settings = builder(&server, proxy.connect_string()).operation_timeout(Duration::from_secs(1));
        let client = settings.connect().await.unwrap();
        // A container would be deleted with its last child and re-created.
        other.create("/closed", "", CreateMode::Persistent).await.unwrap();
        let refused = KeptNode::new(&client, "/closed/refused", "").unwrap();
        let unanswered = KeptNode::new(&client, "/unanswered", "").unwrap();
        for node in [&refused, &unanswered] {
            soon(node.present()).await.unwrap();
        }
        assert_eq!(client.health().missing_nodes, [""; 0]);
        let mut state = client.state();

        other.set_acl("/closed", [Acl::read_all()], None).await.unwrap();
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(state.wait_for(|now| now.generation == 2 && *now == ConnectionState::Connected)).await;
        assert!(matches!(refused.status(), KeptStatus::Failing(error) if error.kind() == ErrorKind::NoAuth));
        assert_eq!(client.health().missing_nodes, ["/closed/refused"]);

        // While the create is held, neither its reply nor any later reply arrives.
        let held = proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/unanswered")).hold());
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(held.fired()).await;
        // The client would drop the link a third of the timeout later.
        let connected = soon(state.wait_for(|now| now.generation == 3 && *now == ConnectionState::Connected)).await.unwrap();
        assert_eq!(connected.suspensions, state.current().suspensions);
        assert!(matches!(unanswered.status(), KeptStatus::Pending));
        assert!(client.health().missing_nodes.contains(&"/unanswered".to_owned()));
        assert_eq!(unanswered.present().await.unwrap_err().kind(), ErrorKind::Timeout);
        proxy.heal().await.unwrap();
        until_kept(&client, &other, "/unanswered", "").await;
    }

    async fn a_kept_node_that_other_clients_delete_or_change_is_restored(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        other.delete("/a", None).await.unwrap();
        until_kept(&client, &other, "/a", "1").await;
        other.set("/a", "wrong", None).await.unwrap();
        until_kept(&client, &other, "/a", "1").await;
    }

    async fn another_clients_node_is_left_alone_and_replaced_after_its_deletion(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        other.create("/a", "theirs", CreateMode::Ephemeral).await.unwrap();
        let mut node = KeptNode::new(&client, "/a", "ours").unwrap();
        let status = soon(node.changed()).await;
        assert!(matches!(status, Some(KeptStatus::Occupied { session_id }) if Some(session_id) == other.session_id()));
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
        other.delete("/a", None).await.unwrap();
        until_kept(&client, &other, "/a", "ours").await;
        // A persistent node cannot be taken over.
        other.create("/b", "theirs", CreateMode::Persistent).await.unwrap();
        let node = KeptNode::new(&client, "/b", "ours").unwrap();
        assert_eq!(soon(node.present()).await.unwrap_err().kind(), ErrorKind::NodeExists);
        soon(node.remove()).await.unwrap();
        assert_eq!(other.get("/b").await.unwrap().data, "theirs");
    }

    async fn another_clients_node_is_an_error_after_two_timeouts(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let client = builder(&server, server.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        other.create("/a", "theirs", CreateMode::Ephemeral).await.unwrap();
        let node = KeptNode::new(&client, "/a", "ours").unwrap();
        let error = soon(node.present()).await.unwrap_err();
        let session = format!("{:#x}", other.session_id().unwrap());
        assert!(error.to_string().contains(&session), "{error}");
    }

    async fn a_node_of_an_older_session_of_the_client_is_replaced(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        soon(node.present()).await.unwrap();
        soon(async { while own_nodes(&other).await.is_empty() {} }).await;
        // The client gives up the session, while another link keeps the session alive at the server.
        let old = client.session_id();
        proxy.cut().await;
        let _alive = soon(server.front().sessions().keep_alive(old.unwrap(), server.address())).await.unwrap();
        let mut state = client.state();
        soon(state.reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        until_kept(&client, &other, "/a", "1").await;
        assert_ne!(client.session_id(), old);
        drop(node);
    }

    async fn data_that_was_set_is_written_once_the_node_is_reported_present(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let node = KeptNode::new(&client, "/a", "0").unwrap();
        for n in 1..20 {
            node.set(n.to_string());
            soon(node.present()).await.unwrap();
            assert_eq!(other.get("/a").await.unwrap().data, n.to_string());
        }
    }

    async fn a_path_is_vacated_when_the_previous_node_is_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for n in 0..10 {
            soon(KeptNode::wait_vacant(&client, "/a")).await.unwrap();
            let node = KeptNode::new(&client, "/a", n.to_string()).unwrap();
            if n % 2 == 0 {
                soon(node.present()).await.unwrap();
            }
            if n == 5 {
                // `wait_vacant` does not wait for a node that is wanted.
                soon(KeptNode::wait_vacant(&client, "/a")).await.unwrap();
                assert_eq!(KeptNode::new(&client, "/a", "").unwrap_err().kind(), ErrorKind::AlreadyRegistered);
            }
        }
        assert_eq!(soon(KeptNode::wait_vacant(&client, "a")).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        soon(client.close()).await;
        assert_eq!(soon(KeptNode::wait_vacant(&client, "/a")).await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn lost_replies_neither_double_nor_lose_a_kept_node(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for op in [OpCode::Create2, OpCode::GetData] {
            for rule in [Rule::on(op).reset_after(), Rule::on(op).reset_before()] {
                proxy.add(rule);
                let node = KeptNode::new(&client, "/a", "1").unwrap();
                soon(node.present()).await.unwrap();
                until_kept(&client, &other, "/a", "1").await;
                proxy.add(Rule::on(OpCode::Delete).reset_after());
                soon(node.remove()).await.unwrap();
                assert_eq!(other.exists("/a").await.unwrap(), None);
            }
        }
    }

    async fn a_second_kept_node_at_a_path_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let node = KeptNode::new(&client, "/a", "1").unwrap();
        let error = KeptNode::new(&client, "/a", "2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyRegistered);
        soon(node.remove()).await.unwrap();
        soon(async { while KeptNode::new(&client, "/a", "2").is_err() { docent_tests::pause().await; } }).await;
        assert_eq!(KeptNode::new(&client, "a", "").unwrap_err().kind(), ErrorKind::InvalidInput);
        soon(client.close()).await;
        assert_eq!(KeptNode::new(&client, "/b", "").unwrap_err().kind(), ErrorKind::Closed);
    }
}
