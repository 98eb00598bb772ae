//! `docent elect`.

use crate::run::{Run, run, servers};
use docent::{Client, Election};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;
use serde_json::Value;

/// Deletes the node of the leader of `/e`.
async fn depose(client: &Client) {
    let line = Election::new(client, "/e").unwrap().candidates().await.unwrap();
    client.delete(&format!("/e/{}", line[0].name), None).await.unwrap();
}

both_backends_in_real_time! {
    async fn the_command_is_started_again_with_each_term(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let script = "trap 'exit 0' TERM; echo $DOCENT_FENCE; while :; do sleep 0.02; done";
        let mut candidate = Run::start(&servers(&server), ["elect", "/e", "--", "sh", "-c", script]);
        let first: u64 = candidate.line().await.parse().unwrap();
        depose(&client).await;
        let second: u64 = candidate.line().await.parse().unwrap();
        assert!(second > first, "fences {first} and {second} must rise");
        candidate.signal(Signal::TERM);
        let ended = candidate.end().await;
        assert_eq!((ended.code, ended.stdout.len()), (0, 0), "TERM must end docent: {ended:?}");
        assert!(ended.stderr.contains("standing again"), "{}", ended.stderr);
        client.close().await;
    }

    async fn with_once_the_exit_code_is_that_of_the_command(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        assert_eq!(run(&connect, ["elect", "--once", "/e", "--", "sh", "-c", "exit 4"]).await.code, 4);
        assert_eq!(run(&connect, ["elect", "/e", "--", "no-such-program"]).await.code, 127);
        let client = Client::connect(&connect).await.unwrap();
        let mut leader = Run::start(&connect, ["elect", "--once", "/e", "--", "sh", "-c", "echo lead; exec sleep 1000"]);
        assert_eq!(leader.line().await, "lead");
        depose(&client).await;
        assert_eq!(leader.end().await.code, 76);
        client.close().await;
    }

    async fn failures_of_the_command_are_reported_and_may_end_docent(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let elect = ["elect", "/e", "--max-failures", "3", "--", "sh", "-c", "echo run; exit 127"];
        let ended = run(&connect, elect).await;
        assert_eq!((ended.code, ended.stdout.len()), (127, 3), "{ended:?}");
        for count in 1..=2 {
            let message = format!("docent: the command ended with exit status: 127; failures in a row: {count}\n");
            assert!(ended.stderr.contains(&message), "{}", ended.stderr);
        }
    }

    async fn a_term_that_another_client_has_ended_is_no_failure(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let words = ["elect", "/e", "--max-failures", "1", "--", "sh", "-c", "echo lead; exec sleep 1000"];
        let mut leader = Run::start(&connect, words);
        let client = Client::connect(&connect).await.unwrap();
        for _ in 0..2 {
            assert_eq!(leader.line().await, "lead");
            let line = Election::new(&client, "/e").unwrap().candidates().await.unwrap();
            client.set(&format!("/e/{}", line[0].name), "__REVOKE__", None).await.unwrap();
        }
        assert_eq!(leader.line().await, "lead", "docent must stand again");
        leader.signal(Signal::TERM);
        let ended = leader.end().await;
        assert!(ended.code == 143 && !ended.stderr.contains("failures in a row"), "{ended:?}");
        client.close().await;
    }

    async fn a_signal_that_a_command_survived_does_not_count_as_its_end(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let script = "trap 'echo dump' QUIT; echo ready; while test ! -e FILE; do sleep 0.02; done; rm FILE; exit 1";
        let script = script.replace("FILE", file.to_str().unwrap());
        let mut leader = Run::start(&servers(&server), ["elect", "/e", "--", "sh", "-c", &script]);
        assert_eq!(leader.line().await, "ready");
        leader.signal(Signal::QUIT);
        assert_eq!(leader.line().await, "dump");
        std::fs::write(&file, "").unwrap();
        assert_eq!(leader.line().await, "ready", "docent must stand again");
        leader.signal(Signal::TERM);
        assert_eq!(leader.end().await.code, 143);
    }

    async fn a_leader_without_a_command_exits_when_asked_to_resign(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut leader = Run::start(&connect, ["elect", "/e"]);
        leader.line().await;
        let client = Client::connect(&connect).await.unwrap();
        let line = Election::new(&client, "/e").unwrap().candidates().await.unwrap();
        let node = format!("/e/{}", line[0].name);
        // As every client that revokes does.
        client.set(&node, "__REVOKE__", None).await.unwrap();
        let ended = leader.end().await;
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.stderr.contains("was asked to leave"), "{}", ended.stderr);
        client.close().await;
    }

    async fn a_listener_prints_a_line_for_each_leader(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut leader = Run::start(&connect, ["elect", "/e", "--id", "one\u{1b}[2J"]);
        let fence = leader.line().await.split_once(' ').unwrap().1.to_owned();
        let mut listener = Run::start(&connect, ["elect", "/e", "--listen"]);
        assert_eq!(listener.line().await, format!("one\\u{{1b}}[2J {fence}"));
        let mut json = Run::start(&connect, ["-o", "json", "elect", "/e", "--listen"]);
        let line: Value = serde_json::from_str(&json.line().await).unwrap();
        assert_eq!(line["leader"]["fence"].to_string(), fence, "{line}");
        leader.signal(Signal::TERM);
        assert_eq!(leader.end().await.code, 0);
        assert_eq!(listener.line().await, "-");
        assert_eq!(json.line().await, "{\"leader\":null}");
        listener.signal(Signal::INT);
        assert_eq!(listener.end().await.code, 0);
    }
}
