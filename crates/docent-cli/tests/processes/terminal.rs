//! Commands at a terminal, which `script` makes.

use crate::run::{Run, command, servers};
use docent_battery::{Backend, both_backends};
use std::process::Stdio;

/// A run of `docent` whose standard streams are a terminal.
fn at_terminal(connect: &str, words: &str) -> Run {
    let plain = command(connect, [""; 0]);
    let plain = plain.as_std();
    let docent: Vec<_> = plain.get_args().map(|word| word.to_str().unwrap()).collect();
    let line = format!("env {} {words}", docent.join(" "));
    let mut script = tokio::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
    script.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).kill_on_drop(true);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Run::of(&mut script)
}

both_backends! {
    async fn the_command_may_read_from_the_terminal(backend: Backend) {
        let server = backend.start().await;
        let mut run = at_terminal(&servers(&server), "lock /a -- sh -c 'echo ready; read x; echo got $x'");
        assert_eq!(run.line().await, "ready");
        run.say("hello\n").await;
        let ended = run.end().await;
        assert!(ended.code == 0 && ended.stdout.iter().any(|line| line == "got hello"), "{ended:?}");
    }

    async fn ctrl_c_reaches_the_command(backend: Backend) {
        let server = backend.start().await;
        let words = "lock /a -- sh -c 'trap \"echo told; exit 7\" INT; echo ready; while :; do sleep 0.02; done'";
        let mut run = at_terminal(&servers(&server), words);
        assert_eq!(run.line().await, "ready");
        run.say("\u{3}").await;
        let ended = run.end().await;
        assert!(ended.code == 7 && ended.stdout.concat().contains("told"), "{ended:?}");
    }

    async fn a_wait_tells_who_holds_it_and_the_place_in_the_line(backend: Backend) {
        let server = backend.start().await;
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--label", "nightly"]);
        holder.line().await;
        let mut waiter = at_terminal(&servers(&server), "lock /a -- true");
        let told = waiter.line().await;
        assert!(told.starts_with("docent: waiting for /a: held by ") && told.contains("nightly"), "{told}");
        assert!(told.contains(" s, 1 ahead"), "{told}");
        drop(holder);
        assert_eq!(waiter.end().await.code, 0);
    }
}
