//! `docent doctor` on servers that serve.

use crate::docent_command::{Ended, docent, end, run, servers};
use docent::Client;
use docent::node::{Acl, CreateMode};
use docent_battery::{Backend, TestServer, both_backends};
use serde_json::Value;

/// The findings of one check at one level.
pub(crate) fn findings<'a>(all: &'a [Value], check: &str, level: &str) -> Vec<&'a Value> {
    all.iter().filter(|finding| finding["check"] == check && finding["level"] == level).collect()
}

/// Asserts that a check failed with `text` and `remedy` somewhere in its words.
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

/// A node that only `user` with `password` may read.
async fn protect(server: &TestServer, path: &str, user: &str, password: &str) {
    let builder = Client::builder(servers(server)).auth_digest(user, password).allow_plaintext_auth();
    let client = builder.acl(vec![Acl::creator_all()]).connect().await.unwrap();
    client.create(path, "secret", CreateMode::Persistent).await.unwrap();
    client.close().await;
}

both_backends! {
    async fn servers_that_are_well_pass_every_check(backend: Backend) {
        let server = backend.start().await;
        let ended = doctor(&servers(&server), &["--clock", "100ms"]).await.ok();
        let all = ended.json();
        for check in ["name", "server", "session", "quorum", "lease", "access", "clock"] {
            assert_eq!(findings(&all, check, "ok").len(), 1, "{check}: {}", ended.stdout);
        }
        assert_eq!(findings(&all, "server", "ok")[0]["server"], server.address().to_string());
        assert!(findings(&all, "server", "ok")[0]["text"].as_str().unwrap().contains("standalone"));
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
        assert!(warnings[0]["text"].as_str().unwrap().contains("in place of the session timeout 7200s"));
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
        assert!(!format!("{wrong:?}").contains("alice:wrong"), "the password is not shown: {wrong:?}");
        check("alice:right").await.ok();
        let without = doctor(&servers(&server), &["--clock", "0", "/secret"]).await;
        assert_failed(&without, "access", "without credentials", "--auth-file");
    }
}
