//! Exit codes of `docent lock`.

use crate::run::{Run, command, run, servers};
use docent::Client;
use docent::node::{Acl, CreateMode};
use docent_battery::{Backend, Direction, Port, ServerOptions, both_backends_in_real_time};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Returns the exit code of `docent lock /a` around a command.
async fn code(connect: &str, words: &[&str]) -> i32 {
    run(connect, ["lock", "/a", "--"].iter().chain(words)).await.code
}

both_backends_in_real_time! {
    async fn the_exit_code_of_the_command_is_not_swallowed(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        assert_eq!(code(&connect, &["true"]).await, 0);
        assert_eq!(code(&connect, &["sh", "-c", "exit 3"]).await, 3);
        assert_eq!(code(&connect, &["sh", "-c", "kill -KILL $$"]).await, 128 + 9);
        let ended = run(&connect, ["lock", "/a", "--", "no-such-program"]).await;
        assert_eq!((ended.code, ended.stderr.contains("\"no-such-program\"")), (127, true), "{ended:?}");
        assert_eq!(code(&connect, &["/"]).await, 126);
    }

    async fn a_held_lock_has_an_exit_code(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = Run::start(&connect, ["lock", "/a", "--label", "nightly"]);
        assert!(holder.line().await.starts_with("/a "));
        let refused = run(&connect, ["lock", "-n", "/a", "--", "echo", "held"]).await;
        assert_eq!((refused.code, refused.stdout.len()), (75, 0), "{refused:?}");
        assert!(refused.stderr.contains("nightly"), "the message must name the holder: {}", refused.stderr);
        let late = run(&connect, ["lock", "--wait", "300ms", "-E", "9", "/a", "--", "echo", "held"]).await;
        assert_eq!((late.code, late.stdout.len()), (9, 0), "{late:?}");
        assert!(late.stderr.contains("not acquired in 300ms"), "{}", late.stderr);
    }

    async fn a_held_lock_is_not_reported_if_its_exit_code_is_zero(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = Run::start(&connect, ["lock", "/a"]);
        assert!(holder.line().await.starts_with("/a "));
        for wait in ["--nonblock", "--wait=100ms"] {
            let refused = run(&connect, ["lock", wait, "--conflict-exit-code", "0", "/a", "--", "echo", "x"]).await;
            assert_eq!((refused.code, refused.stdout.len(), &*refused.stderr), (0, 0, ""));
        }
    }

    async fn a_free_lock_is_acquired_however_short_the_wait(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        for wait in ["0", "1ms"] {
            for (path, kind) in
                [("/x", &["--exclusive"][..]), ("/p", &["--permits", "1/2"]), ("/x", &["--shared"]), ("/a", &[])]
            {
                let words = ["lock", "--wait", wait, path];
                let held = run(&connect, words.iter().chain(kind).chain(&["--", "echo", "held"])).await;
                assert_eq!((held.code, held.stdout), (0, vec!["held".to_owned()]), "{kind:?} {}", held.stderr);
            }
        }
    }

    async fn a_lock_that_is_not_waited_for_does_not_wait_for_a_slow_link(backend: Backend) {
        let server = backend.start().await;
        // Each reply is soon enough, but not all that an acquire needs.
        server.front().set_delay(Direction::ToClient, Duration::from_millis(1_500));
        let ended = run(&servers(&server), ["lock", "--nonblock", "--session-timeout", "30s", "/a/deep/path", "--", "echo", "held"]).await;
        assert_eq!((ended.code, ended.stdout.len()), (69, 0), "{ended:?}");
        assert!(ended.stderr.contains("no answer within 5s"), "{ended:?}");
        // The wait is limited by the time that was given.
        let ended = run(&servers(&server), ["lock", "--wait", "5m", "--session-timeout", "30s", "/a/deep/path", "--", "echo", "held"]).await;
        assert_eq!((ended.code, ended.stdout), (0, vec!["held".to_owned()]), "{}", ended.stderr);
    }

    async fn a_missing_permission_has_an_exit_code(backend: Backend) {
        let server = backend.start().await;
        let builder = Client::builder(servers(&server)).auth_digest("owner", "secret");
        let client = builder.allow_plaintext_auth().acl(vec![Acl::creator_all()]).connect().await.unwrap();
        client.create("/private", "", CreateMode::Persistent).await.unwrap();
        client.close().await;
        let refused = run(&servers(&server), ["lock", "/private/a", "--", "echo", "held"]).await;
        assert_eq!((refused.code, refused.stdout.len()), (77, 0), "{refused:?}");
        assert!(refused.stderr.contains("permission denied"), "{}", refused.stderr);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, "owner:secret\n").unwrap();
        let allowed = ["--auth-file", file.to_str().unwrap(), "--allow-plaintext-auth"];
        let lock = ["lock", "/private/a", "--", "echo", "held"];
        let held = run(&servers(&server), allowed.iter().chain(&lock)).await;
        assert_eq!((held.code, held.stdout), (0, vec!["held".to_owned()]), "{}", held.stderr);
    }

    async fn a_user_of_sasl_works_where_the_servers_require_one(backend: Backend) {
        let options = ServerOptions::default().sasl_user("me", "right").require_sasl(true);
        let server = backend.start_own_with(options).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sasl");
        let lock = async |password: &str| {
            std::fs::write(&file, format!("me:{password}\n")).unwrap();
            let given = ["--sasl-file", file.to_str().unwrap(), "lock", "/a", "--", "echo", "held"];
            run(&server.address().to_string(), given).await
        };
        let held = lock("right").await;
        assert_eq!((held.code, held.stdout), (0, vec!["held".to_owned()]), "{}", held.stderr);
        let refused = lock("wrong-secret").await;
        assert_eq!((refused.code, refused.stdout.len()), (77, 0), "{refused:?}");
        let text = &refused.stderr;
        assert!(text.contains("wrong user or password") && !text.contains("secret"), "{text}");
    }
}

#[cfg(not(docent_gssapi))]
#[tokio::test]
async fn a_build_without_kerberos_names_what_to_build() {
    let ended = run("localhost", ["--sasl-gssapi", "lock", "/a", "--", "echo", "held"]).await;
    assert_eq!((ended.code, ended.stdout.len()), (2, 0), "{ended:?}");
    assert!(ended.stderr.contains("RUSTFLAGS=\"--cfg docent_gssapi\""), "{}", ended.stderr);
}

#[tokio::test]
async fn unreachable_servers_have_an_exit_code() {
    let unused = Port::claim().unwrap().address().to_string();
    let ended = run(&unused, ["--timeout", "300ms", "lock", "/a", "--", "echo", "held"]).await;
    assert_eq!((ended.code, ended.stdout.len()), (69, 0), "{ended:?}");
    assert!(ended.stderr.contains("refused"), "the message must give the reason: {}", ended.stderr);
}

#[tokio::test]
async fn a_lock_that_is_not_waited_for_does_not_wait_long_for_servers() {
    let unused = Port::claim().unwrap().address().to_string();
    let start = Instant::now();
    for wait in ["--nonblock", "--wait=1s"] {
        let ended = run(&unused, ["lock", wait, "/a", "--", "echo", "held"]).await;
        assert_eq!((ended.code, ended.stdout.len()), (69, 0), "{ended:?}");
    }
    // Less than the default operation timeout of 15 s.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_closed_output_pipe_is_not_reported_as_an_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = command("", ["completions", "bash"]).stdout(Stdio::from(writer)).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(128 + 13), &b""[..]));
}

#[tokio::test]
async fn help_and_manual_pages_have_the_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = command("", ["man", "--out", out]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    for verb in ["docent", "docent-lock", "docent-config-watch"] {
        let page = std::fs::read_to_string(folder.path().join(format!("{verb}.1"))).unwrap();
        assert!(page.contains("126  the command cannot be run"), "{page}");
    }
    let page = std::fs::read_to_string(folder.path().join("docent-lock.1")).unwrap();
    assert!(page.contains(r"\-\- CMD..."), "{page}");
    assert!(!folder.path().join("docent-help.1").exists());
    let help = command("", ["help", "lock"]).output().await.unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("Usage: docent lock"), "{text}");
}
