//! A server that runs as a program.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::Peer;
use docent_proto::{Request, Response};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Maximum wait for a program to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the program with these arguments. Signals have their default effect, even if the tests were
/// started with some of them ignored.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_docent-server")]).args(args).stdin(Stdio::null());
    // The log depends on the machine, for example on the number of files that a process may open.
    command.env("RUST_LOG", "error").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running server program, which is killed when this value is dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    pub(crate) greeting: String,
    pub(crate) address: String,
}

impl Program {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::of(command(&["--port", "0"]).args(args))
    }

    /// Starts a command whose standard output is a pipe.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).unwrap();
        let rest = greeting.split_once(" on ").expect("the start line contains the address").1;
        let address = rest.split_once(',').unwrap().0.to_owned();
        Self { child, stdout: Some(stdout), greeting, address }
    }

    /// Starts a command whose standard output is not read, and waits until it listens on `address`.
    pub(crate) async fn silent(command: &mut Command, address: String) -> Self {
        let child = command.spawn().unwrap();
        let mut program = Self { child, stdout: None, greeting: String::new(), address };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&program.address).await.is_err() {
            assert_eq!(program.child.try_wait().unwrap(), None, "the program ended before it listened");
            assert!(Instant::now() < deadline, "the program does not listen");
            sleep(Duration::from_millis(1));
        }
        program
    }

    pub(crate) fn keeping(file: &Path) -> Self {
        Self::start(&["--keep", file.to_str().unwrap()])
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code, `None` if a signal ended the program, and the unread output.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        assert!(has_ended(&mut self.child), "the program does not end");
        let status = self.child.wait().unwrap();
        let mut output = String::new();
        if let Some(mut stdout) = self.stdout.take() {
            stdout.read_to_string(&mut output).unwrap();
        }
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut output).unwrap();
        }
        (status.code(), output)
    }

    /// Resumes the session of another client, which the server may have discarded.
    pub(crate) async fn resumed(&self, of: &Peer) -> Peer {
        let mut peer = Peer::over(TcpStream::connect(&self.address).await.unwrap());
        assert!(peer.attach(&of.ticket()).await, "the server answers the handshake");
        peer
    }

    pub(crate) async fn nodes(&self) -> Vec<String> {
        let mut peer = Peer::connect(&self.address).await;
        let children = Request::GetChildren { path: "/".into(), watch: false };
        let Ok(Response::Children { mut names, .. }) = peer.call(children).await else { panic!() };
        peer.call(Request::CloseSession).await.unwrap();
        names.retain(|name| name != "zookeeper");
        names
    }
}

/// Waits for the end of a process, and kills the process if it does not end in time.
pub(crate) fn has_ended(child: &mut Child) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            return false;
        }
        sleep(Duration::from_millis(1));
    }
    true
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
