//! Bad input is reported by the deadline, as an error that names value and rule.

use docent::client::RetryPolicy;
use docent::{Client, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Port, RawError, Rule, both_backends};
use docent_proto::{Acl, Code, Create, CreateMode as WireMode, OpCode, Request};
use docent_tests::fake::{FakeServer, reply};
use docent_tests::{builder, connect, soon, within};
use std::net::TcpListener;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_millis(500);

both_backends! {
    async fn invalid_paths_and_large_data_are_refused_before_anything_is_sent(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        for path in ["", "a", "/a/", "//", "/a//b", "/./a", "/..", "/a\u{1}", "/a\u{7f}", "/a\u{f8ff}", "/a\u{ffff}"] {
            let error = client.create(path, "", CreateMode::Persistent).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
            assert_eq!(client.get(path).await.unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(client.transaction().delete(path, None).commit().await.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        let large = vec![0; 2_000_000];
        let error = client.create("/large", large.clone(), CreateMode::Persistent).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("1048575"), "{error}");
        let halves = client.transaction().set("/a", large[..600_000].to_vec(), None).set("/b", large[..600_000].to_vec(), None);
        assert_eq!(halves.commit().await.unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(client.transaction().commit().await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let no_ttl = CreateMode::PersistentTtl(Duration::ZERO);
        assert_eq!(client.create("/ttl", "", no_ttl).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let trace = server.front().trace();
        assert!(trace[before..].iter().all(|frame| frame.op == Some(OpCode::Ping)));
        // The largest value that fits is accepted.
        client.create("/fits", vec![0; 1_048_575 - 200], CreateMode::Persistent).await.unwrap();
    }

    async fn strange_paths_are_accepted_exactly_if_servers_accept_them(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        // A name that resembles a contender's or a numbered node's is an ordinary name.
        for path in ["/n-0000000007", "/_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-0000000001", "/ %2e..", "/...", "/日本"] {
            client.create(path, "x", CreateMode::Persistent).await.unwrap();
            assert_eq!(client.get(path).await.unwrap().data, "x", "{path}");
        }
        let numbered = client.create("/n-0000000007", "", CreateMode::EphemeralSequential).await.unwrap().path;
        assert_eq!(numbered.len(), "/n-00000000070000000000".len(), "{numbered}");

        // 64 KiB, below the limit for requests.
        let long = format!("/{}", "x".repeat(64 * 1024));
        client.create(&long, "", CreateMode::Ephemeral).await.unwrap();
        assert!(client.children("/").await.unwrap().names.contains(&long[1..].to_owned()));
        client.delete(&long, None).await.unwrap();
        // The client refuses a path that is longer than a request may be, before it costs a link.
        let error = client.get(&format!("/{}", "x".repeat(1 << 20))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert_eq!(client.state().current().suspensions, 0);
    }

    async fn a_path_of_ten_thousand_levels_is_refused_or_created_by_its_deadline(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await.with_operation_timeout(TIMEOUT);
        let deep = "/d".repeat(10_000);
        assert_eq!(soon(client.exists(&deep)).await.unwrap(), None);
        assert_eq!(soon(client.get(&deep)).await.unwrap_err().kind(), ErrorKind::NoNode);
    }

    async fn characters_beyond_the_basic_plane_are_refused_as_the_servers_do(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let error = client.create("/\u{1f600}", "", CreateMode::Persistent).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        // The servers check UTF-16 and see two surrogates.
        let create = Create::new(server.path("\u{1f600}"), Vec::new().into(), Acl::open(), WireMode::Persistent, 0);
        let reply = server.client().await.call(Request::Create(create)).await;
        assert!(matches!(reply, Err(RawError::Refused(Code::BAD_ARGUMENTS))), "{reply:?}");
    }

    async fn the_servers_own_nodes_are_refused_with_the_servers_error(backend: Backend) {
        let server = backend.start().await;
        let client = soon(server.client_builder(server.connect_string()).connect()).await.unwrap();
        assert!(client.children("/").await.unwrap().names.contains(&"zookeeper".to_owned()));
        let error = client.delete("/zookeeper", None).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidInput, Some("/zookeeper")), "{error}");
        let error = client.create("/zookeeper", "", CreateMode::Persistent).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NodeExists, "{error}");
        client.get("/").await.unwrap();
    }
}

/// Tries to connect. The attempt must fail by its deadline with `reason`.
async fn fails_to_connect(connect_string: &str, reason: &str) {
    let client = Client::builder(connect_string).operation_timeout(TIMEOUT);
    let error = within(TIMEOUT * 4, client.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let text = error.to_string();
    assert!(text.starts_with("connect: no server answered in time: ") && text.contains(reason), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_and_unknown_codes_are_errors_of_the_call() {
    for (code, kind) in [(-125, ErrorKind::QuotaExceeded), (-9999, ErrorKind::Server(-9999))] {
        let server = FakeServer::start().await;
        let client = server.client_builder().build().unwrap();
        let play = async {
            let mut link = server.attached(6_000).await;
            while let Ok(asked) = link.request().await {
                let code = if asked.request == Request::Ping { 0 } else { code };
                link.send(&reply(asked.xid, 1, code, &[])).await;
            }
        };
        let error = tokio::select! {
            () = play => panic!("the client closed the link"),
            result = soon(client.create("/a", "", CreateMode::Persistent)) => result.unwrap_err(),
        };
        assert_eq!((error.kind(), error.path()), (kind, Some("/a")));
        assert!(!error.is_retryable() && !error.may_have_applied(), "{error}");
    }
}

#[tokio::test]
async fn an_address_that_does_not_resolve_is_named_by_the_deadline() {
    fails_to_connect("no-such-host.invalid:2181", "no-such-host.invalid").await;
}

#[tokio::test]
async fn an_address_without_a_listener_is_named_by_the_deadline() {
    let port = Port::claim().unwrap();
    let address = port.address().to_string();
    fails_to_connect(&address, &address).await;
}

#[tokio::test]
async fn a_silent_server_is_abandoned_by_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let client = Client::builder(address).session_timeout(Duration::from_secs(1)).operation_timeout(TIMEOUT);
    let error = soon(client.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn settings_that_break_a_rule_are_refused() {
    for (builder, rule) in [
        (Client::builder(""), "must name at least one server"),
        (Client::builder("a:0"), "which must have a port from 1 to 65535"),
        (Client::builder("a").namespace("name"), "must start with '/'"),
        (Client::builder("a").session_timeout(Duration::ZERO), "must be from 1 ms"),
        (Client::builder("a").session_timeout(Duration::MAX), "must be from 1 ms"),
        (Client::builder("a").operation_timeout(Duration::ZERO), "must be longer than zero"),
        (Client::builder("a").max_request(0), "largest request 0 must be at least 1"),
        (Client::builder("a").max_waiting(15), "number of waiting requests 15 must be at least 16"),
        (Client::builder("a").server_tick(Duration::ZERO), "must be from 1 ms"),
        (Client::builder("a").server_tick(Duration::MAX), "must be from 1 ms to 536870911 ms"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_durations_are_as_good_as_no_limit() {
    let server = Backend::Memory.start().await;
    let proxy = server.proxy().await;
    let settings = builder(&server, proxy.connect_string()).operation_timeout(Duration::MAX);
    // Either the pause before the second attempt exceeds the operation timeout, or the pause is short and the
    // attempts never end.
    let (never, soon_again) =
        (RetryPolicy::fixed(Duration::MAX), RetryPolicy::exponential().within(Duration::MAX));
    for (policy, found) in [(never, Err(ErrorKind::Timeout)), (soon_again, Ok(None))] {
        let client = soon(settings.clone().retry(policy).connect()).await.unwrap();
        soon(client.ensure_absent("/a")).await.unwrap();
        proxy.add(Rule::on(OpCode::Exists).reset_before());
        let patient = client.with_operation_timeout(Duration::from_secs(5));
        assert_eq!(soon(patient.exists("/a")).await.map_err(|error| error.kind()), found);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire_timeout(Duration::MAX)).await.unwrap();
        soon(guard.release()).await.unwrap();
        soon(client.close()).await;
    }
}

#[test]
fn a_client_cannot_be_built_outside_a_runtime() {
    let error = Client::builder("localhost").build().unwrap_err();
    assert!(error.to_string().contains("inside a tokio runtime"), "{error}");
}
