//! Standard streams that cannot be written to, or that no process reads. They must neither stop nor delay the
//! server.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::program::{Program, command};
use crate::support::{Peer, fresh, kept_port, node};
use docent_proto::{Acl, Code, Create, CreateMode, Permissions, Request};
use rustix::io::ioctl_fionbio;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::{Command, Stdio};
use tokio::net::TcpStream;

/// Returns a pipe without a reader.
fn closed() -> PipeWriter {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer
}

/// Returns a file on a file system without space.
fn no_space() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Returns a pipe that is full, and its reader.
fn full() -> (PipeWriter, PipeReader) {
    let (reader, mut writer) = pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    ioctl_fionbio(&writer, false).unwrap();
    (writer, reader)
}

/// Returns the program with all events logged.
fn verbose() -> Command {
    let mut command = command(&["--port", "0"]);
    command.env("RUST_LOG", "debug");
    command
}

/// Sends a frame that is too long. The server closes the link and logs the reason.
async fn refused(address: &str) {
    let mut peer = Peer::over(TcpStream::connect(address).await.unwrap());
    peer.send_bytes(&i32::MAX.to_be_bytes()).await;
    assert!(peer.is_closed().await);
}

/// Asserts that a server serves, and that it answers an invalid request with an error.
async fn assert_serves(address: &str) {
    let mut peer = Peer::connect(address).await;
    peer.create("/a", CreateMode::Persistent).await.expect("the path is free");
    peer.delete("/a").await.expect("the node exists");
    // The refusal is logged.
    let entry =
        |n| Acl { permissions: Permissions::ALL, scheme: "ip".into(), id: format!("10.0.0.{n}").into() };
    let long: Vec<Acl> = (0..1_000).map(entry).collect();
    let create = Create { acl: long.into(), ..node("/a", CreateMode::Persistent) };
    assert_eq!(peer.call(Request::Create(create)).await.unwrap_err(), Code::QUOTA_EXCEEDED);
    peer.call(Request::CloseSession).await.unwrap();
}

fn assert_ends(program: Program) {
    program.signal("-TERM");
    let (code, output) = program.ended();
    assert_eq!(code, Some(0), "{output}");
}

#[tokio::test]
async fn a_thousand_refused_frames_hang_no_client_when_standard_error_is_not_read() {
    let program = Program::of(&mut verbose());
    for _ in 0..1_100 {
        refused(&program.address).await;
    }
    assert_serves(&program.address).await;
    assert_ends(program);
}

#[tokio::test]
async fn a_full_pipe_as_standard_error_hangs_no_client_and_loses_only_lines() {
    let (writer, mut reader) = full();
    let program = Program::of(verbose().stderr(writer));
    refused(&program.address).await;
    assert_serves(&program.address).await;
    // These are more lines than the program queues for a reader that comes back.
    for _ in 0..10_000 {
        refused(&program.address).await;
    }
    let mut read = [0; 1 << 16];
    reader.read_exact(&mut read).unwrap();
    let mut lines = String::new();
    while !lines.contains("lines were dropped") {
        let count = reader.read(&mut read).unwrap();
        lines.push_str(std::str::from_utf8(&read[..count]).unwrap());
    }
    assert!(lines.contains("client exceeded a limit"), "{lines}");
    assert_ends(program);
}

#[tokio::test]
async fn a_standard_error_that_cannot_be_written_to_costs_no_client_its_link() {
    for stderr in [Stdio::from(closed()), no_space().into()] {
        let program = Program::of(verbose().stderr(stderr));
        for _ in 0..10 {
            refused(&program.address).await;
            assert_serves(&program.address).await;
        }
        assert_ends(program);
    }
}

#[tokio::test]
async fn a_standard_error_that_was_closed_costs_no_client_its_link() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>&-", "sh"]).args(arguments(&verbose()));
    let program = Program::of(shell.env("RUST_LOG", "debug").stdout(Stdio::piped()));
    refused(&program.address).await;
    assert_serves(&program.address).await;
    assert_ends(program);
}

fn arguments(command: &Command) -> Vec<std::ffi::OsString> {
    let program = command.get_program().to_owned();
    [program].into_iter().chain(command.get_args().map(Into::into)).collect()
}

/// Returns the program with a limit on open files, of which it warns when it starts.
fn with_few_files(files: u32, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]).args(arguments(&command(args)));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).env("RUST_LOG", "warn");
    shell
}

#[tokio::test]
async fn every_start_succeeds_when_both_streams_are_one_closed_pipe() {
    for _ in 0..40 {
        let (_port, address) = kept_port();
        let port = address.port().to_string();
        let (out, err) = (closed(), closed());
        let mut command = with_few_files(1_000, &["--port", &port]);
        let program = Program::silent(command.stdout(out).stderr(err), address.to_string()).await;
        assert_ends(program);
    }
}

#[tokio::test]
async fn both_streams_in_one_full_pipe_hang_neither_the_start_nor_the_end() {
    let (writer, _reader) = full();
    let (_port, address) = kept_port();
    let port = address.port().to_string();
    let mut command = with_few_files(1_000, &["--port", &port]);
    let command = command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let program = Program::silent(command, address.to_string()).await;
    assert_serves(&program.address).await;
    assert_ends(program);
}

#[tokio::test]
async fn a_server_without_file_descriptors_accepts_again_when_some_are_free() {
    let (unread, _reader) = full();
    for stderr in [Stdio::from(closed()), no_space().into(), unread.into()] {
        let mut command = with_few_files(40, &["--port", "0"]);
        let program = Program::of(command.stderr(stderr));
        let mut attached = Vec::new();
        // Links with sessions are not closed to make room. Further links wait in the backlog.
        while let Some(peer) = attach_in_time(&program.address).await {
            attached.push(peer);
            assert!(attached.len() < 40, "the program has more descriptors than the limit");
        }
        drop(attached);
        assert_serves(&program.address).await;
        assert_ends(program);
    }
}

/// Opens a client with a session; `None` if the server does not answer soon.
async fn attach_in_time(address: &str) -> Option<Peer> {
    let mut peer = Peer::over(TcpStream::connect(address).await.unwrap());
    let answered = tokio::time::timeout(std::time::Duration::from_secs(1), peer.attach(&fresh(10_000))).await;
    answered.unwrap_or(false).then_some(peer)
}
