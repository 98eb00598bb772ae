//! `docent dev`.

use crate::process::{is_alive, until_dead};
use crate::run::{Run, run};
use docent::Client;
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_command_finds_the_server_in_its_environment() {
    let docent = env!("CARGO_BIN_EXE_docent");
    let script = format!("{docent} lock /a -- sh -c 'echo $DOCENT_PATH; exit 6'");
    let ended = run("", ["dev", "--", "sh", "-c", &script]).await;
    assert_eq!((ended.code, ended.stdout), (6, vec!["/a".to_owned()]), "{}", ended.stderr);
}

#[tokio::test]
async fn a_development_server_prints_its_address_and_serves_until_a_signal() {
    let mut server = Run::start("", ["-o", "json", "dev", "--port", "0"]);
    let line: Value = serde_json::from_str(&server.line().await).unwrap();
    let connect = line["connect"].as_str().unwrap().to_owned();
    Client::connect(&connect).await.unwrap().close().await;
    server.signal(Signal::TERM);
    assert_eq!(server.end().await.code, 0);
    assert!(tokio::net::TcpStream::connect(&connect).await.is_err(), "the server must have stopped");
}

#[tokio::test]
async fn abandoned_processes_are_ended_and_a_second_signal_ends_them_immediately() {
    // The command waits until the processes that it leaves are prepared for the signal.
    let script = "(trap 'echo told' TERM; : > \"$0\"; while :; do sleep 0.02; done) & echo $!
        until [ -e \"$0\" ]; do sleep 0.02; done";
    let folder = tempfile::tempdir().unwrap();
    let prepared = folder.path().join("prepared");
    let mut run = Run::start("", ["dev", "--", "sh", "-c", script, prepared.to_str().unwrap()]);
    let remaining = run.number().await;
    assert_eq!(run.line().await, "told");
    let signalled = Instant::now();
    run.signal(Signal::TERM);
    assert_eq!(run.end().await.code, 0);
    // Those processes have five seconds.
    assert!(signalled.elapsed() < Duration::from_secs(4), "{:?}", signalled.elapsed());
    assert!(!is_alive(remaining));
}

#[tokio::test]
async fn a_signal_ends_the_command_and_then_the_server() {
    let mut run = Run::start("", ["dev", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let command = run.number().await;
    run.signal(Signal::TERM);
    assert_eq!(run.end().await.code, 128 + 15);
    until_dead(command).await;
}
