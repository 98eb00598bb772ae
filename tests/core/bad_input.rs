//! Bad input is an error that names value and rule, by its deadline.

use docent::{Client, CreateMode, ErrorKind};
use docent_testkit::{Backend, both_backends};
use docent_tests::{connect, soon, within};
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
        assert!(trace[before..].iter().all(|frame| frame.op == Some(docent_proto::OpCode::Ping)));
        // The largest that fits is taken.
        client.create("/fits", vec![0; 1_048_575 - 200], CreateMode::Persistent).await.unwrap();
    }
}

/// Connects, which must fail by its deadline with `reason`.
async fn fails_to_connect(connect_string: &str, reason: &str) {
    let client = Client::builder(connect_string).operation_timeout(TIMEOUT);
    let error = within(TIMEOUT * 4, client.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let source = std::error::Error::source(&error).expect("it says why there is no link").to_string();
    assert!(source.contains(reason), "{source}");
}

#[tokio::test]
async fn an_address_that_does_not_resolve_is_named_by_the_deadline() {
    fails_to_connect("no-such-host.invalid:2181", "no-such-host.invalid").await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named_by_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    fails_to_connect(&address, &address).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_by_the_deadline() {
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
        (Client::builder("a:0"), "ports from 1 to 65535"),
        (Client::builder("a").namespace("name"), "must start with '/'"),
        (Client::builder("a").session_timeout(Duration::ZERO), "must be from 1 ms"),
        (Client::builder("a").session_timeout(Duration::MAX), "must be from 1 ms"),
        (Client::builder("a").operation_timeout(Duration::ZERO), "must be longer than nothing"),
        (Client::builder("a").max_waiting(0), "must be at least 1"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[test]
fn a_client_cannot_be_built_outside_a_runtime() {
    let error = Client::builder("localhost").build().unwrap_err();
    assert!(error.to_string().contains("inside a tokio runtime"), "{error}");
}
