//! Commands at a terminal, which `script` creates.

use crate::process::until_stopped;
use crate::run::{Run, command, servers};
use docent::Client;
use docent::node::CreateMode;
use docent_battery::{Backend, both_backends_in_real_time};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// A run of a command whose standard streams are a terminal.
fn script(connect: &str, line: &str) -> Run {
    let mut script = tokio::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", line, "/dev/null"]).env_clear().kill_on_drop(true);
    script.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("DOCENT_CONNECT", connect);
    script.env("DOCENT_SERVER_TICK", "200ms");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Run::of(&mut script)
}

/// Returns `docent` as a line for a shell, followed by these words.
fn docent(words: &str) -> String {
    let command = command("", [""; 0]);
    let docent: Vec<_> = command.as_std().get_args().map(|word| word.to_str().unwrap()).collect();
    format!("env {} {words}", docent.join(" "))
}

/// Runs `lines` in a shell with job control, as at a prompt. `FILE` is replaced by a file in `folder`.
fn shell(connect: &str, folder: &Path, lines: &str) -> Run {
    let script = folder.join("script");
    let file = folder.join("file");
    fs::write(&script, format!("set -m\n{}\n", lines.replace("FILE", file.to_str().unwrap()))).unwrap();
    self::script(connect, &format!("bash {}", script.display()))
}

#[tokio::test]
async fn help_and_errors_have_colours_only_if_they_may() {
    // Help, and an error of the command line.
    for words in ["--help", "lock", "--no-such-option"] {
        for (setting, option, has_color) in [
            ("TERM=xterm", "", true),
            ("TERM=xterm", "--color never", false),
            ("TERM=xterm", "--color=never", false),
            ("TERM=xterm NO_COLOR=1", "", false),
            ("TERM=xterm NO_COLOR=1", "--color always", true),
            ("TERM=dumb", "", false),
        ] {
            let variables = format!("--default-signal {setting}");
            let line = docent(&format!("{option} {words}")).replacen("--default-signal", &variables, 1);
            let text = script("", &line).end().await.stdout.concat();
            assert!(text.contains("docent"), "{line}: {text}");
            assert_eq!(text.contains('\u{1b}'), has_color, "{line}: {text}");
        }
    }
}

both_backends_in_real_time! {
    async fn the_command_may_read_from_the_terminal(backend: Backend) {
        let server = backend.start().await;
        let mut run = script(&servers(&server), &docent("lock /a -- sh -c 'echo ready; read x; echo got $x'"));
        assert_eq!(run.line().await, "ready");
        run.write("hello\n").await;
        let ended = run.end().await;
        assert!(ended.code == 0 && ended.stdout.iter().any(|line| line == "got hello"), "{ended:?}");
    }

    async fn ctrl_c_reaches_the_command(backend: Backend) {
        let server = backend.start().await;
        let words = "lock /a -- sh -c 'trap \"echo told; exit 7\" INT; echo ready; while :; do sleep 0.02; done'";
        let mut run = script(&servers(&server), &docent(words));
        assert_eq!(run.line().await, "ready");
        run.write("\u{3}").await;
        let ended = run.end().await;
        assert!(ended.code == 7 && ended.stdout.concat().contains("told"), "{ended:?}");
    }

    async fn ctrl_z_stops_docent_with_its_command_and_the_shell_resumes_both(backend: Backend) {
        let server = backend.start().await;
        let lock = docent("lock /a -- sh -c \"echo ready; read x; echo got \\$x\"");
        let shell = format!("set -m; {lock}; echo stopped; fg >/dev/null; echo code $?");
        let mut run = script(&servers(&server), &format!("bash -c '{shell}'"));
        assert_eq!(run.line().await, "ready");
        run.write("\u{1a}").await;
        let mut line = run.line().await;
        while line != "stopped" {
            line = run.line().await;
        }
        run.write("hello\n").await;
        let ended = run.end().await;
        let printed = |text: &str| ended.stdout.iter().any(|line| line == text);
        assert!(printed("got hello") && printed("code 0"), "{ended:?}");
    }

    async fn ctrl_c_ends_the_script_that_runs_docent(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let holder = Run::start(&servers(&server), ["lock", "/held"]);
        for (name, shell) in [("/a", "bash"), ("/b", "sh"), ("/held", "bash")] {
            let lock = docent(&format!("lock {name} -- sh -c \"echo at $i; exec sleep 1000\""));
            let script = folder.path().join("loop");
            fs::write(&script, format!("for i in 1 2; do echo begin $i; {lock}; done; echo went on\n")).unwrap();
            let line = format!("env --default-signal {shell} {}", script.display());
            let mut run = self::script(&servers(&server), &line);
            let expected = if name == "/held" { "docent: waiting for /held" } else { "at 1" };
            while !run.line().await.starts_with(expected) {}
            run.write("\u{3}").await;
            let ended = run.end().await;
            assert_eq!(ended.code, 130, "{ended:?}");
            assert!(!ended.stdout.concat().contains("begin 2") && !ended.stdout.concat().contains("went on"), "{ended:?}");
        }
        drop(holder);
    }

    async fn a_command_that_waits_for_the_terminal_gets_it_when_the_shell_gives_it_to_docent(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let lock = docent("lock /a -- bash -c 'echo $$; read x; echo got $x'");
        let mut run = shell(&servers(&server), folder.path(), &format!("{lock} &\nread y\nfg >/dev/null\necho code $?"));
        let mut line = run.line().await;
        let command = loop {
            match line.parse() {
                Ok(command) => break command,
                Err(_) => line = run.line().await,
            }
        };
        until_stopped(command).await;
        run.write("go on\n").await;
        run.write("hello\n").await;
        let ended = run.end().await;
        let printed = |text: &str| ended.stdout.iter().any(|line| line == text);
        assert!(printed("got hello") && printed("code 0"), "{ended:?}");
    }

    async fn a_waiter_reports_the_holder_and_its_place_in_the_line(backend: Backend) {
        let server = backend.start().await;
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--label", "nightly"]);
        holder.line().await;
        let mut waiter = script(&servers(&server), &docent("lock /a -- true"));
        let message = waiter.line().await;
        assert!(message.starts_with("docent: waiting for /a: held by ") && message.contains("nightly"), "{message}");
        assert!(message.contains(" s, 1 ahead"), "{message}");
        drop(holder);
        assert_eq!(waiter.end().await.code, 0);
    }

    async fn a_node_that_was_re_created_since_it_was_shown_is_not_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let node = "/a/_c_274ea99d-ba87-4def-bd24-7d1929098c6d-lock-0000000000";
        let make = async || client.create(node, "host", CreateMode::Ephemeral).await.unwrap();
        make().await;
        let mut run = script(&servers(&server), &docent("break /a"));
        assert!(run.line().await.contains(node));
        let line = run.line().await;
        assert!(line.contains("holds, owner host, present for "), "{line}");
        client.delete(node, None).await.unwrap();
        make().await;
        run.write("y\n").await;
        let ended = run.end().await;
        assert!(ended.code == 73 && ended.stdout.concat().contains("nothing was deleted"), "{ended:?}");
        assert!(client.exists(node).await.unwrap().is_some());
        client.close().await;
    }

    async fn a_value_that_was_published_again_since_it_was_shown_is_not_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let publish = async |value: &'static str| client.create("/limits", value, CreateMode::Persistent).await.unwrap();
        publish("old").await;
        let mut run = script(&servers(&server), &docent("config delete /limits"));
        assert!(run.line().await.contains("/limits"));
        assert!(run.line().await.contains("version 0 of "));
        client.delete("/limits", None).await.unwrap();
        publish("new").await;
        run.write("y\n").await;
        let ended = run.end().await;
        assert!(ended.code == 73 && ended.stdout.concat().contains("nothing was deleted"), "{ended:?}");
        assert_eq!(client.get("/limits").await.unwrap().data, "new");
        client.close().await;
    }

    async fn a_neighbour_in_the_pipeline_may_use_the_terminal(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let wait = "bash -c 'echo one; while test ! -e FILE; do sleep 0.02; done; echo two'";
        let neighbour = "sh -c 'read a; echo asked; read b </dev/tty; touch FILE; read c; echo $a $b $c'";
        let lines = format!("{} | {neighbour}\necho code ${{PIPESTATUS[0]}}", docent(&format!("lock /a -- {wait}")));
        let mut run = shell(&servers(&server), folder.path(), &lines);
        assert_eq!(run.line().await, "asked");
        run.write("typed\n").await;
        let ended = run.end().await;
        let printed = |text: &str| ended.stdout.iter().any(|line| line == text);
        assert!(printed("one typed two") && printed("code 0"), "{ended:?}");
    }

    async fn a_neighbour_that_is_stopped_at_the_terminal_does_not_stop_docent(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let lock = docent("lock /a -- sh -c 'touch FILE; read x; echo got $x' >/dev/tty");
        let neighbour = "sh -c 'while test ! -e FILE; do sleep 0.02; done; echo $$; read b </dev/tty'";
        let lines = format!("{lock} | {neighbour}\necho code ${{PIPESTATUS[0]}}\nkill -KILL %1");
        let mut run = shell(&servers(&server), folder.path(), &lines);
        let neighbour = run.number().await;
        until_stopped(neighbour).await;
        run.write("hello\n").await;
        let ended = run.end().await;
        let printed = |text: &str| ended.stdout.iter().any(|line| line == text);
        assert!(printed("got hello") && printed("code 0"), "{ended:?}");
    }

    async fn a_command_in_a_pipeline_gets_the_terminal_when_it_reads_from_it(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let lock = docent("lock /a -- sh -c 'echo ready; read x; echo got $x'");
        let mut run = shell(&servers(&server), folder.path(), &format!("{lock} | cat"));
        assert_eq!(run.line().await, "ready");
        run.write("hello\n").await;
        let ended = run.end().await;
        assert!(ended.stdout.iter().any(|line| line == "got hello"), "{ended:?}");
    }

    async fn ctrl_z_at_a_pipeline_stops_the_command_too(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let wait = "bash -c 'trap \"\" TSTP; echo $$; while test ! -e FILE; do sleep 0.02; done'";
        let lock = docent(&format!("lock /a -- {wait}"));
        let lines = format!("{lock} | cat\necho stopped\nread x\ntouch FILE\nfg >/dev/null\necho code $?");
        let mut run = shell(&servers(&server), folder.path(), &lines);
        let command = run.number().await;
        run.write("\u{1a}").await;
        while !run.line().await.ends_with("stopped") {}
        until_stopped(command).await;
        run.write("go on\n").await;
        let ended = run.end().await;
        assert!(ended.stdout.iter().any(|line| line == "code 0"), "{ended:?}");
    }

    async fn a_command_that_was_stopped_beyond_its_lease_does_not_resume(backend: Backend) {
        let server = backend.start().await;
        let (connect, folder) = (servers(&server), tempfile::tempdir().unwrap());
        let wait = "bash -c 'echo $$; while test ! -e FILE; do sleep 0.02; done; echo ran on'";
        let lines = format!("{}\necho stopped\nread x\nfg >/dev/null\necho code $?", docent(&format!("lock --session-timeout 4s /a -- {wait}")));
        let mut run = shell(&connect, folder.path(), &lines);
        let command = run.number().await;
        run.write("\u{1a}").await;
        while !run.line().await.ends_with("stopped") {}
        until_stopped(command).await;
        let file = folder.path().join("file");
        let next = crate::run::run(&connect, ["lock", "/a", "--", "touch", file.to_str().unwrap()]).await;
        assert_eq!(next.code, 0);
        run.write("go on\n").await;
        let ended = run.end().await;
        assert!(ended.stdout.iter().any(|line| line == "code 76"), "{ended:?}");
        assert!(!ended.stdout.iter().any(|line| line == "ran on"), "{ended:?}");
    }
}
