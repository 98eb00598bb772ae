use super::{Peer, TIMEOUT, secret};
use docent_battery::{Backend, RawClient, both_backends_in_real_time};
use docent_proto::{Acl, ClientInfo, Code, CreateMode, Request, Response};
use std::time::Duration;

async fn ephemerals(peer: &mut Peer, prefix: &str) -> Vec<String> {
    match peer.call(Request::GetEphemerals { prefix: prefix.into() }).await {
        Ok(Response::Ephemerals(mut paths)) => {
            paths.sort();
            paths
        }
        other => panic!("{other:?}"),
    }
}

async fn count(peer: &mut Peer, path: &str) -> Result<i32, Code> {
    match peer.call(Request::GetAllChildrenNumber { path: path.into() }).await? {
        Response::Count(count) => Ok(count),
        other => panic!("{other:?}"),
    }
}

both_backends_in_real_time! {
    async fn a_session_can_list_its_ephemeral_nodes(backend: Backend) {
        let server = backend.start().await;
        let (mut owner, mut other) = (Peer::of(&server).await, Peer::of(&server).await);
        assert_eq!(ephemerals(&mut owner, "").await, [""; 0]);
        let all = ["a", "ab", "b"].map(|name| server.path(name));
        for path in &all {
            owner.create_as(path, CreateMode::Ephemeral, Acl::open()).await;
        }
        other.create_as(&server.path("c"), CreateMode::Ephemeral, Acl::open()).await;
        owner.create(&server.path("d")).await;
        for prefix in ["", "/", " ", " / ", "\t/"] {
            assert_eq!(ephemerals(&mut owner, prefix).await, all, "{prefix:?}");
        }
        // The prefix may end in the middle of a name.
        assert_eq!(ephemerals(&mut owner, &all[0]).await, all[..2]);
        assert_eq!(ephemerals(&mut owner, server.root()).await, all);
        assert_eq!(ephemerals(&mut owner, &format!("{}/", all[0])).await, [""; 0]);
        assert_eq!(ephemerals(&mut owner, &format!(" {}", all[0])).await, [""; 0]);
        owner.delete(&all[2]).await;
        assert_eq!(ephemerals(&mut owner, "/").await, all[..2]);
    }

    async fn all_nodes_below_a_node_are_counted(backend: Backend) {
        let server = backend.start_own().await;
        let mut peer = Peer::of(&server).await;
        peer.authenticate("user:secret").await;
        let [node, child, beside, hidden] = ["a", "a/b", "ab", "c"].map(|name| server.path(name));
        assert_eq!(count(&mut peer, &node).await, Err(Code::NO_NODE));
        peer.create(&node).await;
        assert_eq!(count(&mut peer, &node).await, Ok(0));
        peer.create(&child).await;
        peer.create(&format!("{child}/c")).await;
        peer.create(&beside).await;
        assert_eq!(count(&mut peer, &node).await, Ok(2));
        assert_eq!(count(&mut peer, server.root()).await, Ok(4));
        // Three nodes of the server, one of the test, and four of this case.
        assert_eq!(count(&mut peer, "/").await, Ok(8));
        assert_eq!(count(&mut peer, "").await, Ok(9));
        assert_eq!(count(&mut peer, &format!("{node}/")).await, Err(Code::NO_NODE));
        peer.create_as(&hidden, CreateMode::Persistent, secret("user:x")).await;
        assert_eq!(count(&mut peer, &hidden).await, Err(Code::NO_AUTH));
    }

    async fn who_am_i_reports_identities_without_secrets(backend: Backend) {
        let server = backend.start().await;
        let mut peer = Peer::of(&server).await;
        let identity = |scheme: &str, user: &str| ClientInfo { scheme: scheme.into(), user: user.into() };
        let address = identity("ip", "127.0.0.1");
        assert_eq!(peer.call(Request::WhoAmI).await, Ok(Response::Clients(vec![address.clone()])));
        peer.authenticate("user:secret").await;
        peer.authenticate("user:secret").await;
        peer.authenticate("no colon").await;
        let Ok(Response::Clients(mut clients)) = peer.call(Request::WhoAmI).await else { panic!() };
        clients.sort_by_key(|client| client.user.clone());
        assert_eq!(clients, [address, identity("digest", "no colon"), identity("digest", "user")]);
    }

    async fn a_server_is_not_reconfigured(backend: Backend) {
        let server = backend.start_own().await;
        let mut peer = Peer::of(&server).await;
        let (joining, leaving, members) = (Some("server.2=a:1:2;3".to_owned()), None, None);
        let before = peer.0.ask(Request::Ping).await.unwrap().header.zxid;
        let reply = peer.0.ask(Request::Reconfig { joining, leaving, members, config: -1 }).await.unwrap();
        assert_eq!((reply.header.code, reply.header.zxid), (Code::RECONFIG_DISABLED, before + 1));
    }

    async fn a_step_of_sasl_is_answered_with_nothing(backend: Backend) {
        let server = backend.start().await;
        let mut peer = Peer::of(&server).await;
        for token in ["", "token"] {
            let reply = peer.0.ask(Request::Sasl { token: Some(token.into()) }).await.unwrap();
            assert_eq!((reply.header.zxid, reply.response), (0, Some(Response::Sasl { token: None })));
        }
        peer.call(Request::Ping).await.unwrap();
        assert!(peer.0.ask(Request::Sasl { token: None }).await.is_err(), "the link is closed");
    }

    async fn a_single_check_fails_as_in_a_multi(backend: Backend) {
        let server = backend.start().await;
        let mut peer = Peer::of(&server).await;
        let check = |path: &str, version| Request::Check { path: path.into(), version };
        assert_eq!(peer.call(check(&server.path("a"), -1)).await, Err(Code::NO_NODE));
        assert_eq!(peer.call(check(server.root(), 7)).await, Err(Code::BAD_VERSION));
        peer.call(Request::Ping).await.unwrap();
    }

    async fn an_operation_of_servers_is_refused_and_an_unknown_one_ends_the_link(backend: Backend) {
        let server = backend.start_own().await;
        let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
        let before = client.ask(Request::Ping).await.unwrap().header.zxid;
        let header = |op: i32| [1_i32.to_be_bytes(), op.to_be_bytes()].concat();
        let answer = |zxid: i64, code: Code| {
            [&1_i32.to_be_bytes()[..], &zxid.to_be_bytes(), &code.0.to_be_bytes()].concat()
        };
        client.send_frame(&[&header(20)[..], b"/zookeeper"].concat()).await.unwrap();
        assert_eq!(client.frame().await.unwrap(), answer(before + 1, Code::BAD_ARGUMENTS));
        for unknown in [0, 10, 23, 99, 108, -1] {
            let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
            client.send_frame(&header(unknown)).await.unwrap();
            assert_eq!(client.frame().await.unwrap(), answer(-1, Code::UNIMPLEMENTED), "{unknown}");
            assert!(client.frame().await.is_err(), "the link is closed");
        }
    }

    async fn a_session_that_does_nothing_but_log_in_expires(backend: Backend) {
        const TIMEOUT: Duration = Duration::from_millis(400);
        let server = backend.start().await;
        let login = Request::Auth { scheme: "digest".into(), credentials: "alice:secret".into() };
        for request in [login, Request::Sasl { token: Some("x".into()) }] {
            let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
            let logging_in = async {
                while client.ask(request.clone()).await.is_ok() {
                    tokio::time::sleep(TIMEOUT / 8).await;
                }
            };
            tokio::time::timeout(TIMEOUT * 20, logging_in).await.expect("the server closes the link");
        }
    }
}
