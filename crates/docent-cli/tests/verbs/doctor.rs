//! `docent doctor` with working servers.

use crate::docent_command::{Ended, docent, end, run, servers};
use docent::Client;
use docent::node::{Acl, CreateMode, Permissions};
use docent::server::{Dialect, Server};
use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use serde_json::Value;
use std::fs::Permissions as Mode;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Returns the findings of one check at one level.
pub(crate) fn findings<'a>(all: &'a [Value], check: &str, level: &str) -> Vec<&'a Value> {
    all.iter().filter(|finding| finding["check"] == check && finding["level"] == level).collect()
}

/// Asserts that a check failed, with `text` and `remedy` as parts of its finding.
#[track_caller]
pub(crate) fn assert_failed(ended: &Ended, check: &str, text: &str, remedy: &str) {
    let all = ended.json();
    let failed = findings(&all, check, "failure");
    let has = |finding: &&Value, key: &str, part: &str| {
        finding[key].as_str().is_some_and(|words| words.contains(part))
    };
    assert!(failed.iter().any(|f| has(f, "text", text) && has(f, "remedy", remedy)), "{ended:#?}");
    assert_ne!(ended.code, 0, "{ended:?}");
}

pub(crate) async fn doctor(connect: &str, arguments: &[&str]) -> Ended {
    run(connect, ["doctor", "-o", "json"].iter().chain(arguments)).await
}

/// Creates a node that only `user` with `password` may read.
async fn protect(server: &TestServer, path: &str, user: &str, password: &str) {
    let builder = Client::builder(servers(server)).auth_digest(user, password).allow_plaintext_auth();
    let client = builder.acl(vec![Acl::creator_all()]).connect().await.unwrap();
    client.create(path, "secret", CreateMode::Persistent).await.unwrap();
    client.close().await;
}

both_backends_in_real_time! {
    async fn healthy_servers_pass_every_check(backend: Backend) {
        let server = backend.start().await;
        let ended = doctor(&servers(&server), &["--clock", "100ms"]).await.ok();
        let all = ended.json();
        for check in ["name", "server", "session", "quorum", "lease", "identity", "access", "dialect", "clock"] {
            assert_eq!(findings(&all, check, "ok").len(), 1, "{check}: {}", ended.stdout);
        }
        assert_eq!(findings(&all, "server", "ok")[0]["server"], server.address().to_string());
        assert!(findings(&all, "server", "ok")[0]["text"].as_str().unwrap().contains("standalone"));
    }

    async fn payloads_that_callers_in_java_cannot_read_together_are_reported(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let class = "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance";
        for (folder, id, payload) in [
            ("/services/orders", "java", format!(r#"{{"@class":"{class}","metadata":{{}}}}"#)),
            ("/services/orders", "rust", r#"{"zone":"a"}"#.to_owned()),
            ("/services/prices", "java", format!(r#"{{"@class":"{class}","metadata":{{}}}}"#)),
            ("/services/prices", "bare", "null".to_owned()),
        ] {
            let data = format!(r#"{{"name":"x","id":"{id}","payload":{payload}}}"#);
            client.create(&format!("{folder}/{id}"), data, CreateMode::Persistent).await.unwrap();
        }
        let ended = doctor(&servers(&server), &["--clock", "0"]).await.ok();
        let all = ended.json();
        let found = findings(&all, "payloads", "warning");
        assert_eq!(found.len(), 1, "{}", ended.stdout);
        let words = |key: &str| found[0][key].as_str().unwrap();
        assert!(words("text").contains("/services/orders") && words("text").contains("rust"), "{found:?}");
        assert!(words("remedy").contains("--neighbour spring-cloud"), "{found:?}");
        client.close().await;
    }

    async fn a_table_shows_each_remedy_below_its_finding(backend: Backend) {
        let server = backend.start().await;
        let ended = run(&servers(&server), ["doctor", "--clock", "0", "/none"]).await.ok();
        let lines: Vec<_> = ended.stdout.lines().collect();
        let place = lines.iter().position(|line| line.starts_with("warning  access")).unwrap();
        assert!(lines[place].contains("/none does not exist yet"), "{}", ended.stdout);
        assert!(lines[place + 1].trim_start().starts_with("-> "), "{}", ended.stdout);
    }

    async fn a_session_timeout_below_four_ticks_fails_with_the_least_that_is_safe(backend: Backend) {
        let server = backend.start().await;
        let arguments = ["--session-timeout", "500ms", "--server-tick", "200ms", "--clock", "0"];
        let ended = doctor(&servers(&server), &arguments).await;
        assert_failed(&ended, "lease", "500ms is below four times", "800ms or more with --session-timeout");
        assert_eq!(ended.code, 1);
    }

    async fn a_timeout_that_the_servers_do_not_grant_is_a_warning(backend: Backend) {
        let server = backend.start().await;
        let ended = doctor(&servers(&server), &["--session-timeout", "2h", "--clock", "0"]).await.ok();
        let all = ended.json();
        let warnings = findings(&all, "lease", "warning");
        assert!(warnings[0]["text"].as_str().unwrap().contains("instead of 7200s"));
    }

    async fn a_wrong_digest_shows_as_permission_denied_with_the_file_it_is_in(backend: Backend) {
        let server = backend.start().await;
        protect(&server, "/secret", "alice", "right").await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        let check = async |credentials: &str| {
            std::fs::write(&file, credentials).unwrap();
            let arguments = ["doctor", "-o", "json", "--clock", "0", "/secret", "--allow-plaintext-auth", "--auth-file"];
            let child = docent(&servers(&server), arguments).arg(&file).spawn().unwrap();
            end(child).await
        };
        let wrong = check("alice:wrong").await;
        assert_failed(&wrong, "access", "permission denied at /secret", "compare user and password");
        assert_eq!(wrong.code, 77);
        assert!(!format!("{wrong:?}").contains("alice:wrong"), "the password must not be shown: {wrong:?}");
        assert!(wrong.stdout.contains("the servers identify this client as ") && wrong.stdout.contains("digest alice"), "{wrong:?}");
        let right = check("alice:right").await.ok();
        let entry = "its access control list is digest alice: everything (this client); this client may: everything";
        assert!(right.stdout.contains(entry) && !right.stdout.contains("right"), "{right:?}");
        let without = doctor(&servers(&server), &["--clock", "0", "/secret"]).await;
        assert_failed(&without, "access", "without credentials", "--auth-file");
    }

    async fn an_invalid_path_is_one_finding_among_several(backend: Backend) {
        let server = backend.start().await;
        let ended = doctor(&servers(&server), &["--clock", "0", "relative", "/"]).await;
        assert_failed(&ended, "access", "\"relative\" must start with '/'", "/shop/lock");
        assert_eq!((ended.code, findings(&ended.json(), "access", "ok").len()), (2, 1));
    }

    async fn a_password_that_other_users_can_read_is_a_warning(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, "alice:right").unwrap();
        let check = async |mode| {
            std::fs::set_permissions(&file, Mode::from_mode(mode)).unwrap();
            let arguments = ["--clock", "0", "--allow-plaintext-auth", "--auth-file", file.to_str().unwrap()];
            doctor(&servers(&server), &arguments).await.ok().json()
        };
        let open = check(0o644).await;
        let warnings = findings(&open, "password", "warning");
        assert!(warnings[0]["text"].as_str().unwrap().contains("its mode is 644"), "{warnings:?}");
        assert!(warnings[1]["text"].as_str().unwrap().contains("without TLS"), "{warnings:?}");
        assert_eq!(findings(&check(0o600).await, "password", "warning").len(), 1);
    }

    async fn permissions_of_this_client_and_of_other_clients_are_distinguished(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        client.create("/shared", "", CreateMode::Persistent).await.unwrap();
        let bob = Acl::digest("bob", "b", Permissions::ALL);
        let here = Acl::new(Permissions::CREATE, "ip", "127.0.0.0/8");
        client.set_acl("/shared", [Acl::read_all(), here, bob], None).await.unwrap();
        client.close().await;
        let ended = doctor(&servers(&server), &["--clock", "0", "/shared"]).await.ok();
        let list = "world anyone: READ (this client), ip 127.0.0.0/8: CREATE (this client), digest bob: everything; \
                    this client may: READ | CREATE";
        assert!(ended.stdout.contains(list), "{ended:?}");
        let report = ended.json();
        assert_eq!(findings(&report, "identity", "ok")[0]["text"], "the servers identify this client as ip 127.0.0.1");
    }
}

/// Nothing listens at the named servers: they must not be contacted.
#[tokio::test]
async fn an_invalid_setting_is_reported_before_any_server_is_contacted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "neither").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, named) in [
        (&["--auth-file", "/none", "--allow-plaintext-auth"][..], "/none"),
        (&["--auth-file", file, "--allow-plaintext-auth"], "user:password"),
        (&["--auth-file", file], "--allow-plaintext-auth"),
        (&["--tls-ca", "/none"], "/none"),
        (&["--tls-ca", file], "no certificate in PEM"),
    ] {
        let ended = doctor("127.0.0.1:1", arguments).await;
        assert_eq!((ended.code, &*ended.stdout), (2, ""), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(named), "{arguments:?}: {ended:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_not_fatal_while_another_one_serves() {
    let server = Server::start().await.unwrap();
    let connect = format!("{},127.0.0.1:1", server.connect_string());
    let ended = doctor(&connect, &["--clock", "0"]).await;
    assert_failed(&ended, "port", "connection refused", "start the server");
    assert_eq!(ended.code, 1);
}

#[tokio::test]
async fn servers_that_cannot_report_the_clients_identity_pass_with_a_remark() {
    let server = Server::start().await.unwrap();
    server.set_dialect(Dialect::ZooKeeper35);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    std::fs::write(&file, "alice:right").unwrap();
    let credentials = ["--auth-file", file.to_str().unwrap(), "--allow-plaintext-auth"];
    for (arguments, level) in [(&[][..], "ok"), (&credentials, "warning")] {
        let ended = doctor(server.connect_string(), &[&["--clock", "0"], arguments].concat()).await.ok();
        let all = ended.json();
        let report = findings(&all, "identity", level);
        assert!(report[0]["text"].as_str().unwrap().contains("ZooKeeper does from 3.7 on"), "{ended:?}");
        assert_eq!(
            findings(&all, "access", "ok").len(),
            1,
            "what follows is checked all the same: {ended:?}"
        );
    }
}

#[tokio::test]
async fn a_clickhouse_keeper_is_named_and_passes_quickly_with_a_remark() {
    for (dialect, version, lacks_containers) in
        [(Dialect::Keeper2025, "25.", true), (Dialect::Keeper2026, "26.", false)]
    {
        let server = Server::builder().dialect(dialect).start().await.unwrap();
        let started = std::time::Instant::now();
        let ended = doctor(server.connect_string(), &["--clock", "0"]).await.ok();
        let took = started.elapsed();
        let all = ended.json();
        let text =
            |check: &str, level: &str| findings(&all, check, level)[0]["text"].as_str().unwrap().to_owned();
        assert!(text("server", "ok").contains(&format!("ClickHouse Keeper {version}")), "{ended:?}");
        let named = text("dialect", "warning");
        assert!(named.contains("restores no sessions") && named.contains("whoAmI"), "{named}");
        assert_eq!(named.contains("containers"), lacks_containers, "{named}");
        // A query of the identity that is repeated until its timeout takes 15 s.
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

/// Returns the findings about the lease at a server with this tick and these bounds that does not answer
/// `conf`.
async fn lease_findings(tick: u64, bounds: Option<(u64, u64)>) -> Vec<Value> {
    let millis = Duration::from_millis;
    let builder = Server::builder().tick(millis(tick)).four_letter_words(["srvr"]);
    let builder = match bounds {
        Some((min, max)) => builder.session_timeouts(millis(min), millis(max)),
        None => builder,
    };
    let server = builder.start().await.unwrap();
    let ended = doctor(server.connect_string(), &["--clock", "0"]).await.ok();
    assert!(
        server.sessions().is_empty(),
        "the sessions of the check must be closed: {:?}",
        server.sessions()
    );
    ended.json().into_iter().filter(|finding| finding["check"] == "lease").collect()
}

#[tokio::test]
async fn a_tick_that_is_not_reported_is_inferred_from_granted_timeouts() {
    let concluded = lease_findings(2_000, None).await;
    assert_eq!(concluded.len(), 1, "{concluded:?}");
    let text = concluded[0]["text"].as_str().unwrap();
    assert!(text.contains("inferred from the session timeouts they grant (4s to 40s), of 2s"), "{text}");
    let unknown = lease_findings(2_000, Some((400, 60_000))).await;
    assert_eq!(unknown.len(), 2, "{unknown:?}");
    assert_eq!(unknown[1]["level"], "warning");
    assert!(unknown[1]["text"].as_str().unwrap().contains("(400ms to 60s)"), "{unknown:?}");
}
