//! The server as a program: its start line, its signals, its exit codes, and what it keeps.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::Peer;
use docent_proto::{CreateMode, Request, Response};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use tempfile::TempDir;
use tokio::net::TcpStream;

const PROGRAM: &str = env!("CARGO_BIN_EXE_docent-server");

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    // What is logged depends on the machine, such as on the files that a process may open.
    command.env("RUST_LOG", "error").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Output of a program that ends by itself.
fn output(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A program that serves. On drop it is killed.
struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
    greeting: String,
    address: String,
}

impl Program {
    fn start(args: &[&str]) -> Self {
        let mut child = command(&["--port", "0"]).args(args).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).unwrap();
        let rest = greeting.split_once(" on ").expect("it says where it listens").1;
        let address = rest.split_once(',').unwrap().0.to_owned();
        Self { child, stdout, greeting, address }
    }

    fn keeping(file: &Path) -> Self {
        Self::start(&["--keep", file.to_str().unwrap()])
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// The exit code, and what it still said.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// A client with the session of another one, which the server may have forgotten.
    async fn resumed(&self, of: &Peer) -> Peer {
        let mut peer = Peer::over(TcpStream::connect(&self.address).await.unwrap());
        assert!(peer.attach(&of.ticket()).await, "it is told, not refused");
        peer
    }

    async fn nodes(&self) -> Vec<String> {
        let mut peer = Peer::connect(&self.address).await;
        let children = Request::GetChildren { path: "/".into(), watch: false };
        let Ok(Response::Children { mut names, .. }) = peer.call(children).await else { panic!() };
        peer.call(Request::CloseSession).await.unwrap();
        names.retain(|name| name != "zookeeper");
        names
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn it_says_what_it_is_and_both_signals_stop_it_cleanly() {
    for signal in ["-TERM", "-INT"] {
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
        let (code, said) = program.ended();
        assert_eq!((code, &*said), (Some(0), "docent-server stopped: 1 nodes and 1 sessions are gone\n"));
    }
}

#[tokio::test]
async fn a_clean_stop_is_kept_and_a_kill_loses_what_came_since() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    let program = Program::keeping(&file);
    let store = format!("in memory, kept in {file:?} at a clean stop (not durable)\n");
    assert!(program.greeting.ends_with(&store), "{}", program.greeting);
    let mut peer = Peer::connect(&program.address).await;
    peer.create("/kept", CreateMode::Persistent).await.unwrap();
    peer.create("/mine", CreateMode::Ephemeral).await.unwrap();
    program.signal("-TERM");
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("2 nodes and 1 sessions are kept in"), "{said}");

    let program = Program::keeping(&file);
    let mut peer = program.resumed(&peer).await;
    peer.set_data("/mine", b"x").await.expect("the session and its node are there");
    peer.create("/lost", CreateMode::Persistent).await.unwrap();
    program.signal("-KILL");
    assert_eq!(program.ended().0, None);

    let program = Program::keeping(&file);
    assert_eq!(program.nodes().await, ["kept"]);
    assert_eq!(program.resumed(&peer).await.session.session_id, 0, "its session has ended");
}

#[test]
fn a_port_that_is_taken_and_a_bad_file_are_told() {
    let taken = Program::start(&[]);
    let port = taken.address.rsplit_once(':').unwrap().1;
    let refused = output(&["--port", port]);
    assert_eq!(refused.status.code(), Some(1));
    let text = format!("docent-server: start: cannot listen on 127.0.0.1:{port}: ");
    assert!(stderr(&refused).starts_with(&text), "{}", stderr(&refused));
    assert!(refused.stdout.is_empty(), "it does not say that it serves");

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    fs::write(&file, "tickTime=2000\n").unwrap();
    let refused = output(&["--port", "0", "--keep", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let text = format!("docent-server: start: keep {file:?}: was not written by this server");
    assert!(stderr(&refused).starts_with(&text), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&file).unwrap(), "tickTime=2000\n");
}

#[test]
fn wrong_options_have_an_exit_code_of_their_own() {
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
    // Both at once: to write so much takes longer.
    let both = format!("kill -TERM {0}; kill -INT {0}", program.child.id());
    assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
    let (code, said) = program.ended();
    // They may be seen in either order.
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    assert_eq!(said, "docent-server: stopped at once, without a clean stop\n");
    // The new file takes the place of the old one as a whole or not at all.
    let count = Program::keeping(&file).nodes().await.len();
    assert!(count == 0 || count == 64, "{count}");
}
