//! The proxy's faults on links and its trace of them, in front of either server.

use docent_battery::{
    Backend, Direction, Fate, Flow, FrameKind, Proxy, RawClient, RawError, Rule, TestServer,
    both_backends_in_real_time, round_trips, watch_events,
};
use docent_proto::{Acl, Code, Create, CreateMode, EventKind, OpCode, Request, Response};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(2);
/// Long enough for a reply on loopback, short enough to wait for a reply that must not arrive.
const MOMENT: Duration = Duration::from_millis(300);

async fn client(proxy: &Proxy) -> RawClient {
    RawClient::open(proxy.address(), TIMEOUT).await.expect("the link passes")
}

fn create(path: &str) -> Request {
    Request::Create(Create::new(path.into(), "value".into(), Acl::open(), CreateMode::Ephemeral, 0))
}

fn exists(path: &str) -> Request {
    Request::Exists { path: path.into(), watch: false }
}

async fn node_exists(server: &TestServer, path: &str) -> bool {
    let mut other = server.client().await;
    let reply = other.ask(exists(path)).await.expect("the link passes");
    reply.header.code == Code::OK
}

fn is_reset(error: &RawError) -> bool {
    matches!(error, RawError::Io(error) if error.kind() == std::io::ErrorKind::ConnectionReset)
}

both_backends_in_real_time! {
    async fn a_passing_proxy_changes_nothing_and_notes_every_frame(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        client.call(create("/passed")).await.unwrap();
        let failed = client.ask(create("/passed")).await.unwrap();
        assert_eq!(failed.header.code, Code::NODE_EXISTS);
        client.close().await.unwrap();
        let trace = proxy.trace();
        let kinds: Vec<_> = trace.iter().map(|frame| (frame.direction, frame.kind)).collect();
        let exchange = |kind, answer| [(Direction::ToServer, kind), (Direction::ToClient, answer)];
        let mut expected = exchange(FrameKind::Connect, FrameKind::Connect).to_vec();
        for _ in 0..3 {
            expected.extend(exchange(FrameKind::Request, FrameKind::Reply));
        }
        assert_eq!(kinds, expected);
        assert!(trace[2].is_request(OpCode::Create2) && trace[5].is_reply(OpCode::Create2));
        assert_eq!((trace[2].path.as_deref(), trace[5].path.as_deref()), (Some("/passed"), Some("/passed")));
        assert_eq!((trace[3].code, trace[5].code), (Some(Code::OK), Some(Code::NODE_EXISTS)));
        assert_eq!((trace[2].xid, trace[3].xid), (trace[3].xid, Some(1)));
        assert_eq!(round_trips(&trace), 3);
    }

    async fn requests_sent_together_are_one_round_trip(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        let before = proxy.trace().len();
        let list = Request::GetChildren2 { path: "/".into(), watch: false };
        client.send([create("/together"), list]).await.unwrap();
        client.reply().await.unwrap();
        client.reply().await.unwrap();
        assert_eq!(round_trips(&proxy.trace()[before..]), 1);
        client.call(exists("/together")).await.unwrap();
        assert_eq!(round_trips(&proxy.trace()[before..]), 2);
    }

    async fn watch_events_are_noted_and_stay_in_order_with_replies(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        proxy.set_delay(Direction::ToClient, Duration::from_millis(5));
        let mut client = client(proxy).await;
        client.ask(Request::Exists { path: "/watched".into(), watch: true }).await.unwrap();
        client.call(create("/watched")).await.unwrap();
        let event = client.event().await.unwrap();
        assert_eq!((event.kind, event.path.as_str()), (EventKind::Created, "/watched"));
        let trace = proxy.trace();
        assert_eq!(watch_events(&trace), 1);
        let event = trace.iter().position(|frame| frame.kind == FrameKind::Event).unwrap();
        let reply = trace.iter().position(|frame| frame.is_reply(OpCode::Create2)).unwrap();
        assert!(event < reply, "the server sends the event of a write before the write's reply");
    }

    async fn the_reply_of_the_second_matching_request_is_swallowed(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        let rule =
            proxy.add(Rule::on(OpCode::Create2).path(|path| path.starts_with("/swallow")).nth(2).swallow_reply());
        client.call(create("/swallow-1")).await.unwrap();
        client.call(create("/other")).await.unwrap();
        assert!(!rule.has_fired());
        client.send([create("/swallow-2")]).await.unwrap();
        rule.fired().await;
        let next = client.call(exists("/swallow-2")).await.unwrap();
        assert!(matches!(next, Response::Stat(_)), "the request was applied and the link lives");
        let swallowed: Vec<_> = proxy.trace().into_iter().filter(|frame| frame.fate == Fate::Swallowed).collect();
        assert!(swallowed.len() == 1 && swallowed[0].path.as_deref() == Some("/swallow-2"), "{swallowed:?}");
    }

    async fn a_reset_before_the_request_leaves_it_undone(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        let rule = proxy.add(Rule::on(OpCode::Create2).reset_before());
        client.send([exists("/"), create("/undone")]).await.unwrap();
        // The previous reply may arrive, but then the link ends.
        while client.reply().await.is_ok() {}
        rule.fired().await;
        assert!(!node_exists(&server, "/undone").await);
    }

    async fn a_reset_after_the_request_leaves_it_done(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        let rule = proxy.add(Rule::on(OpCode::Create2).reset_after());
        let error = client.call(create("/done")).await.unwrap_err();
        assert!(is_reset(&error), "{error:?}");
        rule.fired().await;
        assert!(node_exists(&server, "/done").await);
    }

    async fn a_held_request_and_what_follows_it_arrive_once_it_heals(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        let rule = proxy.add(Rule::on(OpCode::Create2).path(|path| path == "/held").hold());
        client.call(create("/before")).await.unwrap();
        client.send([create("/held"), create("/behind")]).await.unwrap();
        rule.fired().await;
        assert!(!node_exists(&server, "/held").await && !node_exists(&server, "/behind").await);
        // Another request arrives first.
        server.client().await.call(create("/held")).await.unwrap();
        proxy.heal().await.unwrap();
        let codes = [client.reply().await.unwrap().header.code, client.reply().await.unwrap().header.code];
        assert_eq!(codes, [Code::NODE_EXISTS, Code::OK]);
    }

    async fn a_session_without_its_client_is_kept_alive_until_it_is_ended(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = RawClient::open(proxy.address(), SHORT).await.unwrap();
        client.call(create("/alive")).await.unwrap();
        let session = client.session().session_id;
        let alive = proxy.sessions().keep_alive(session, server.address()).await.unwrap();
        // A session attached from outside lives for ten seconds without a request.
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert!(node_exists(&server, "/alive").await);
        server.expire(session).await.unwrap();
        assert!(!node_exists(&server, "/alive").await);
        drop(alive);
        assert!(proxy.sessions().keep_alive(session, server.address()).await.is_err());
    }

    async fn a_cut_resets_links_and_refuses_new_ones_until_it_heals(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        proxy.cut().await;
        let error = client.ask(exists("/")).await.unwrap_err();
        assert!(matches!(error, RawError::Io(_)), "{error:?}");
        let refused = RawClient::open(proxy.address(), TIMEOUT).await.unwrap_err();
        assert!(
            matches!(&refused, RawError::Io(e) if e.kind() == std::io::ErrorKind::ConnectionRefused),
            "{refused:?}"
        );
        proxy.heal().await.unwrap();
        self::client(proxy).await.close().await.unwrap();
    }

    async fn a_reset_ends_present_links_and_lets_new_ones_pass(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        proxy.reset().await;
        let error = client.reply().await.unwrap_err();
        assert!(is_reset(&error), "{error:?}");
        self::client(proxy).await.close().await.unwrap();
    }

    async fn a_swallowed_request_is_never_applied(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        proxy.set_flow(Direction::ToServer, Flow::Swallow);
        client.send([create("/swallowed")]).await.unwrap();
        proxy.until(|trace| trace.last().is_some_and(|frame| frame.fate == Fate::Swallowed)).await;
        proxy.heal().await.unwrap();
        assert!(client.ask(exists("/swallowed")).await.unwrap().response.is_none());
    }

    async fn a_request_whose_reply_is_swallowed_is_applied(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        proxy.set_flow(Direction::ToClient, Flow::Swallow);
        client.send([create("/unheard")]).await.unwrap();
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::Create2))).await;
        proxy.heal().await.unwrap();
        client.call(exists("/unheard")).await.unwrap();
    }

    async fn a_blackhole_hides_from_the_server_that_the_client_disconnected(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let client = client(proxy).await;
        let session = client.session().session_id;
        proxy.blackhole();
        drop(client);
        // The proxy attaches to the session with its password, which works only while the session lives.
        proxy.expire_session(session).await.unwrap();
    }

    async fn held_messages_arrive_once_the_link_heals(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        proxy.set_flow(Direction::ToClient, Flow::Hold);
        client.send([create("/held-back"), exists("/held-back")]).await.unwrap();
        assert!(tokio::time::timeout(MOMENT, client.reply()).await.is_err());
        proxy.heal().await.unwrap();
        assert!(matches!(client.reply().await.unwrap().response, Some(Response::Created { .. })));
        assert!(matches!(client.reply().await.unwrap().response, Some(Response::Stat(_))));
    }

    async fn delays_of_both_directions_add_up(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        proxy.set_delay(Direction::ToServer, Duration::from_millis(60));
        proxy.set_delay(Direction::ToClient, Duration::from_millis(40));
        let sent = Instant::now();
        client.call(exists("/")).await.unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(100), "{:?}", sent.elapsed());
    }

    async fn a_throttle_limits_the_bytes_per_second_of_a_direction(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        let path = server.path(&"x".repeat(500));
        for direction in [Direction::ToServer, Direction::ToClient] {
            proxy.set_throttle(direction, NonZeroU32::new(2_000));
            let sent = Instant::now();
            // The path is in the request, but not in the reply of 20 bytes.
            client.ask(exists(&path)).await.unwrap();
            match direction {
                Direction::ToServer => assert!(sent.elapsed() >= Duration::from_millis(250), "{:?}", sent.elapsed()),
                Direction::ToClient => assert!(sent.elapsed() >= Duration::from_millis(10), "{:?}", sent.elapsed()),
            }
            proxy.set_throttle(direction, None);
        }
    }

    async fn a_new_link_into_a_blackhole_is_accepted_and_mute(backend: Backend) {
        let server = backend.start().await;
        for directions in [&[Direction::ToServer][..], &[Direction::ToClient], &[Direction::ToServer, Direction::ToClient]] {
            let proxy = server.proxy().await;
            for direction in directions {
                proxy.set_flow(*direction, Flow::Swallow);
            }
            let attach = RawClient::open(proxy.address(), TIMEOUT);
            let connects = proxy.until(|trace| trace.iter().any(|frame| frame.kind == FrameKind::Connect));
            tokio::select! {
                attached = attach => panic!("the attach was answered: {attached:?}"),
                () = async { connects.await; tokio::time::sleep(MOMENT).await } => {}
            }
        }
    }

    async fn a_cut_after_a_request_keeps_new_links_out_until_it_heals(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let rule = proxy.add(Rule::on(OpCode::Create2).cut_after());
        let mut client = client(&proxy).await;
        assert!(is_reset(&client.call(create("/cut-after")).await.unwrap_err()));
        rule.fired().await;
        assert!(RawClient::open(proxy.address(), TIMEOUT).await.is_err());
        assert!(node_exists(&server, "/cut-after").await);
        proxy.heal().await.unwrap();
        self::client(&proxy).await.close().await.unwrap();
    }

    async fn a_session_can_be_granted_less_when_it_is_attached_to_again(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let first = client(&proxy).await;
        assert_eq!(first.session().timeout_ms, 10_000);
        proxy.set_longest_timeout(Some(Duration::from_secs(4)));
        let again = docent_proto::ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: 10_000,
            session_id: first.session().session_id,
            password: first.session().password.clone(),
            read_only: Some(false),
        };
        let again = RawClient::attach(proxy.address(), &again).await.unwrap();
        assert_eq!(again.session().timeout_ms, 4_000);
        assert_eq!(again.session().session_id, first.session().session_id);
    }

    async fn an_expired_session_is_removed_with_its_nodes(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.front();
        let mut client = client(proxy).await;
        client.call(create("/expires")).await.unwrap();
        assert!(node_exists(&server, "/expires").await);
        proxy.expire_session(client.session().session_id).await.unwrap();
        assert!(!node_exists(&server, "/expires").await);
        assert!(proxy.expire_session(1).await.is_err(), "an unknown session cannot be ended");
    }

    async fn four_letter_words_pass(backend: Backend) {
        let server = backend.start().await;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let proxy = server.front();
        let mut stream = tokio::net::TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(b"ruok").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "imok");
    }

    async fn a_dropped_proxy_closes_its_links(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let mut client = client(&proxy).await;
        let address = proxy.address();
        drop(proxy);
        assert!(client.reply().await.is_err());
        let listens_no_more = async {
            while tokio::net::TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, listens_no_more).await.unwrap();
    }
}
