//! A table of wrong input: each error names the value and the rule.

use docent::{Client, ErrorKind};
use docent_tests::soon;
use std::time::Duration;

#[tokio::test]
async fn connect_strings() {
    for (text, error) in [
        ("", r#"must name at least one server, for example "zk1:2181""#),
        ("http://zk1:2181", r#"must not have a scheme: write "zk1:2181" instead of "http://…""#),
        ("zk1:2181;zk2:2181", "must separate servers with ',', not with ';'"),
        ("zk1:2181 zk2:2181", "must separate servers with ',', not with ' '"),
        ("zk1,,zk2", r#"has the server "", which must have a host name or an IP address"#),
        (":2181", r#"has the server ":2181", which must have a host name or an IP address"#),
        (
            "zk1,zk2:99999",
            r#"has the server "zk2:99999", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181"#,
        ),
        ("::1", r#"has the server "::1", which must have its IPv6 address in brackets, as in "[::1]:2181""#),
        ("[::1", r#"has the server "[::1", which has a '[' without a ']'"#),
        ("zk1/shop,zk2/shop", "must have its chroot once, after the last server, and without a comma"),
        ("zk1/shop/", "chroot must not end with '/'"),
    ] {
        let refused = Client::builder(text).build().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert_eq!(refused.to_string(), format!("connect: connect string {text:?} {error}"));
    }
    for text in [
        "zk1",
        "zk1:2181",
        "zk1, zk2",
        "[::1]",
        "[::1]:99/shop",
        "10.0.0.1:2181/",
        "ZK1.example.com:2181,zk2",
    ] {
        Client::builder(text).build().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn connecting_without_a_server() {
    let server = docent_battery::Backend::Memory.start().await;
    let connect =
        |servers: &str| server.client_builder(servers).operation_timeout(Duration::from_secs(5)).connect();
    let error = soon(connect("127.0.0.1:1,127.0.0.2:1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(
        error.to_string(),
        "connect: no server answered in time: 127.0.0.1:1: connection refused, 127.0.0.2:1: connection refused"
    );
}
