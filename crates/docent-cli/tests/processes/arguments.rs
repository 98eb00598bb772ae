//! Arguments and the environment of commands.

use crate::run::{Run, run, servers};
use docent::server::Server;
use docent_battery::{Backend, both_backends_in_real_time};

both_backends_in_real_time! {
    async fn docent_runs_the_command_without_a_shell(backend: Backend) {
        let server = backend.start().await;
        let words = ["lock", "/a", "--", "printf", "%s|", "$HOME", "a  b", ";", "*"];
        let ended = run(&servers(&server), words).await;
        assert_eq!(ended.stdout, ["$HOME|a  b|;|*|"]);
        let mut parent = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo $PPID; read x"]);
        let id = parent.id();
        assert_eq!(parent.number().await, id);
    }

    async fn options_of_the_command_are_not_parsed_by_docent(backend: Backend) {
        let server = backend.start().await;
        let words = ["lock", "/a", "--", "echo", "--nonblock", "--connect", "x", "-h", "--", "-n"];
        let ended = run(&servers(&server), words).await;
        assert_eq!(ended.stdout, ["--nonblock --connect x -h -- -n"]);
        assert_eq!(run(&servers(&server), ["lock", "/a", "--", "echo", "hi", "--"]).await.stdout, ["hi --"]);
        let refused = run(&servers(&server), ["lock", "/a", "echo", "held"]).await;
        assert_eq!((refused.code, refused.stdout.len()), (2, 0), "{refused:?}");
    }

    async fn the_command_knows_path_and_fence_and_fences_rise(backend: Backend) {
        let server = backend.start().await;
        let words = ["lock", "/a", "--", "sh", "-c", "echo $DOCENT_PATH $DOCENT_FENCE"];
        let mut last = 0;
        for _ in 0..2 {
            let ended = run(&servers(&server), words).await;
            let (path, fence) = ended.stdout[0].split_once(' ').unwrap();
            let fence: u64 = fence.parse().unwrap();
            assert!(path == "/a" && fence > last, "fence {fence} must be above {last}");
            last = fence;
        }
        let words = ["lock", "--shared", "/b", "--", "sh", "-c", "echo ${DOCENT_FENCE-none}"];
        assert_eq!(run(&servers(&server), words).await.stdout, ["none"]);
    }

    async fn a_command_without_a_fence_does_not_get_that_of_an_outer_lock(backend: Backend) {
        let server = backend.start().await;
        let script = "echo $DOCENT_PATH ${DOCENT_FENCE-none}";
        let inner = [env!("CARGO_BIN_EXE_docent"), "lock", "--shared", "/b", "--", "sh", "-c", script];
        let ended = run(&servers(&server), ["lock", "/a", "--"].into_iter().chain(inner)).await;
        assert_eq!(ended.stdout, ["/b none"], "{ended:?}");
    }

    async fn the_output_is_the_commands_alone(backend: Backend) {
        let server = backend.start().await;
        let mut holder = Run::start(&servers(&server), ["lock", "/a"]);
        holder.line().await;
        let waiter = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo out; echo err >&2"]);
        // Longer than the delay before progress is shown on a terminal.
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        drop(holder);
        let ended = waiter.end().await;
        assert_eq!((ended.code, ended.stdout, &*ended.stderr), (0, vec!["out".to_owned()], "err\n"));
    }
}

#[tokio::test]
async fn usage_errors_name_the_value_and_the_rule() {
    let server = Server::start().await.unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["lock", "/a", "--"], "nothing follows '--'"),
        (&["lock", "a"], "must start with '/'"),
        (&["lock", "/a", "--permits", "5/4"], "at most LIMIT"),
        (&["lock", "/a", "--wait", "soon"], "such as 1500ms or 30s"),
        (&["lock", "/a", "--nonblock", "--wait", "1s"], "cannot be used with"),
        (&["lock", "/a", "--shared", "--permits", "1/4"], "cannot be used with"),
        (&["lock", "/a", "--kill-after", "5s", "--", "true"], "must be at most 1.1s"),
        (&["--connect", "a:b", "lock", "/a"], "connect string"),
    ];
    for (words, rule) in cases {
        let ended = run(server.connect_string(), words).await;
        assert_eq!(ended.code, 2, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(rule), "{words:?}: {}", ended.stderr);
    }
    let ended = run("", ["lock", "/a"]).await;
    assert!(ended.code == 2 && ended.stderr.contains("DOCENT_CONNECT"), "{ended:?}");
}

#[tokio::test]
async fn an_argument_that_is_not_utf_8_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt;
    let ended = run("", [std::ffi::OsStr::from_bytes(b"\xff")]).await;
    assert_eq!(ended.code, 2, "{ended:?}");
}
