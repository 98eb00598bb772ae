//! The server as a program: its start line, its signals, its exit codes, and its state file.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::program::{Program, command, has_ended};
use crate::support::Peer;
use docent_proto::{Code, CreateMode, Request};
use std::fs;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Runs a program that ends on its own, and returns its output.
fn output(args: &[&str]) -> Output {
    let mut child = command(args).spawn().unwrap();
    assert!(has_ended(&mut child), "the program did not end");
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn the_server_prints_its_address_and_each_signal_stops_it_cleanly() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let program = Program::start(&[]);
        let version = env!("CARGO_PKG_VERSION");
        let address = &program.address;
        assert_eq!(
            program.greeting,
            format!(
                "docent-server {version}: embedded server for ZooKeeper clients on {address}, in memory\n"
            )
        );
        let mut peer = Peer::connect(address).await;
        peer.create("/a", CreateMode::Persistent).await.unwrap();
        program.signal(signal);
        assert!(peer.is_closed().await);
        let (code, output) = program.ended();
        assert_eq!((code, &*output), (Some(0), "docent-server stopped: 1 nodes and 1 sessions discarded\n"));
    }
}

#[tokio::test]
async fn a_clean_stop_keeps_the_state_and_a_kill_loses_later_changes() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    let program = Program::keeping(&file);
    let store = format!("in memory, saved in {file:?} at a clean stop (not durable)\n");
    assert!(program.greeting.ends_with(&store), "{}", program.greeting);
    let mut peer = Peer::connect(&program.address).await;
    peer.create("/kept", CreateMode::Persistent).await.unwrap();
    peer.create("/mine", CreateMode::Ephemeral).await.unwrap();
    program.signal("-TERM");
    let (code, output) = program.ended();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("2 nodes and 1 sessions saved in"), "{output}");

    let program = Program::keeping(&file);
    let mut peer = program.resumed(&peer).await;
    peer.set_data("/mine", b"x").await.expect("the session and its node exist");
    peer.create("/lost", CreateMode::Persistent).await.unwrap();
    program.signal("-KILL");
    assert_eq!(program.ended().0, None);

    let program = Program::keeping(&file);
    assert_eq!(program.nodes().await, ["kept"]);
    assert_eq!(program.resumed(&peer).await.session.session_id, 0, "the session must have ended");
}

#[test]
fn a_port_in_use_and_a_bad_file_are_reported() {
    let taken = Program::start(&[]);
    let port = taken.address.rsplit_once(':').unwrap().1;
    let refused = output(&["--port", port]);
    assert_eq!(refused.status.code(), Some(1));
    let text = format!("docent-server: start: cannot listen on 127.0.0.1:{port}: ");
    assert!(stderr(&refused).starts_with(&text), "{}", stderr(&refused));
    assert!(refused.stdout.is_empty(), "a failed start printed the start line");

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    fs::write(&file, "tickTime=2000\n").unwrap();
    let refused = output(&["--port", "0", "--keep", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let text = format!("docent-server: start: keep {file:?}: the file was not written by this server");
    assert!(stderr(&refused).starts_with(&text), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&file).unwrap(), "tickTime=2000\n");
}

#[test]
fn wrong_options_have_their_own_exit_code() {
    let refused = output(&["--port", "many"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = "docent-server: --port \"many\" must be a number from 0 to 65535; --help lists the options\n";
    assert_eq!(stderr(&refused), text);
    let help = output(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("Usage: docent-server [OPTIONS]"), "{text}");
    assert!(text.contains("NOT DURABLE"), "{text}");
    let version = output(&["--version"]);
    assert_eq!(version.stdout, concat!("docent-server ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

#[tokio::test]
async fn a_second_signal_does_not_wait_and_leaves_a_whole_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    let program = Program::keeping(&file);
    let mut peer = Peer::connect(&program.address).await;
    let data = vec![7; 1_000_000];
    for number in 0..64 {
        let path = format!("/large-{number}");
        peer.create(&path, CreateMode::Persistent).await.unwrap();
        peer.set_data(&path, &data).await.unwrap();
    }
    // The signals follow each other immediately, and writing this much data takes longer.
    let both = format!("kill -TERM {0}; kill -INT {0}", program.child.id());
    assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
    let (code, output) = program.ended();
    // The program may receive them in either order.
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    assert_eq!(output, "docent-server: stopped immediately by a second signal, without a clean stop\n");
    // The new file replaces the old one as a whole or not at all.
    let count = Program::keeping(&file).nodes().await.len();
    assert!(count == 0 || count == 64, "{count}");
}

#[tokio::test]
async fn each_signal_that_stops_the_server_keeps_the_state() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    for (count, signal) in (1..).zip(["-TERM", "-INT", "-HUP"]) {
        let program = Program::keeping(&file);
        let mut peer = Peer::connect(&program.address).await;
        peer.create(&format!("/{count}"), CreateMode::Persistent).await.unwrap();
        program.signal(signal);
        let (code, output) = program.ended();
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains(&format!("{count} nodes and {count} sessions saved in")), "{output}");
    }
}

#[tokio::test]
async fn a_hangup_that_is_ignored_from_the_start_does_not_stop_the_server() {
    let mut nohup = Command::new("env");
    nohup.args(["--ignore-signal=HUP", env!("CARGO_BIN_EXE_docent-server"), "--port", "0"]);
    let program = Program::of(nohup.stdin(Stdio::null()).stdout(Stdio::piped()));
    program.signal("-HUP");
    Peer::connect(&program.address).await.call(Request::Ping).await.expect("the program still serves");
    program.signal("-TERM");
    assert_eq!(program.ended().0, Some(0));
}

#[tokio::test]
async fn a_file_that_another_server_uses_is_refused_by_its_name() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    let first = Program::keeping(&file);
    Peer::connect(&first.address).await.create("/kept", CreateMode::Persistent).await.unwrap();
    let refused = output(&["--port", "0", "--keep", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let text = format!(
        "docent-server: start: keep {file:?}: the file is in use by another server; each server needs its own file\n"
    );
    assert_eq!(stderr(&refused), text);
    first.signal("-KILL");
    assert_eq!(first.ended().0, None);
    let second = Program::keeping(&file);
    second.signal("-TERM");
    assert_eq!(second.ended().0, Some(0));
}

#[tokio::test]
async fn limits_and_a_seed_are_set_by_options() {
    let start = || Program::start(&["--seed", "7", "--nodes", "1", "--total-bytes", "1KiB"]);
    let (one, other) = (start(), start());
    let mut peers = [Peer::connect(&one.address).await, Peer::connect(&other.address).await];
    let [first, second] = &peers;
    assert_eq!(first.session.password, second.session.password);
    let peer = &mut peers[0];
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    assert_eq!(peer.last_zxid, 2, "the first transaction opened the session");
    assert_eq!(peer.create("/b", CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
    peer.set_data("/a", &[7; 900]).await.unwrap();
    assert!(peer.set_data("/a", &[7; 1_100]).await.is_err());
}

#[test]
fn a_file_of_users_that_cannot_be_used_is_refused_without_its_content() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("users");
    let refusal = || {
        let refused = output(&["--port", "0", "--sasl-users", file.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2));
        stderr(&refused)
    };
    let missing = refusal();
    assert!(missing.contains(&format!("--sasl-users {file:?} must be readable: No such file")), "{missing}");
    fs::write(&file, "me:right\ntop-secret\n").unwrap();
    let damaged = refusal();
    assert!(damaged.contains("must have user:password in line 2"), "{damaged}");
    assert!(!damaged.contains("top-secret") && !damaged.contains("right"), "{damaged}");
}
