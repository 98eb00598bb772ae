use crate::process::{PATIENCE, send};
use docent_battery::{Proxy, TestServer};
use rustix::process::{Signal, geteuid};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Session timeout of the runs: a lease of 2.7 s, and at most 4 s until an abandoned lock is free.
pub(crate) const SESSION: &str = "4s";

/// A run of `docent`, killed on drop.
#[derive(Debug)]
pub(crate) struct Run {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// A finished run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// Lines that were not read before.
    pub(crate) stdout: Vec<String>,
    /// Empty if standard error is not a pipe.
    pub(crate) stderr: String,
}

/// Returns the servers and chroot of a test, through the proxy in front of them.
pub(crate) fn servers(server: &TestServer) -> String {
    through(server.front(), server)
}

/// Returns the servers and chroot of a test, through a proxy.
pub(crate) fn through(proxy: &Proxy, server: &TestServer) -> String {
    format!("{}{}", proxy.connect_string(), server.root())
}

/// Returns `docent` with these arguments, in an environment with a short session timeout and the tick of the
/// test servers. No signal is ignored from the start, whatever runs the tests.
pub(crate) fn command<A: AsRef<OsStr>>(connect: &str, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_docent")]).args(arguments);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("DOCENT_CONNECT", connect).kill_on_drop(true);
    command.env("DOCENT_SESSION_TIMEOUT", SESSION).env("DOCENT_SERVER_TICK", "200ms");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a [`command`] as an ordinary user, who may not read the folder of the tests' `docent`: `copy` is a
/// copy in a folder that everyone may read. If this process is not root, its user is that user.
pub(crate) fn as_ordinary_user(copy: &Path, docent: &Command) -> Command {
    if !copy.exists() {
        fs::copy(env!("CARGO_BIN_EXE_docent"), copy).unwrap();
    }
    let docent = docent.as_std();
    let is_root = geteuid().is_root();
    let mut command = Command::new(if is_root { "setpriv" } else { "env" });
    if is_root {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    command.arg(copy).args(docent.get_args().skip(2)).env_clear().kill_on_drop(true);
    command.envs(docent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Run {
    /// Starts `docent`.
    pub(crate) fn start<A: AsRef<OsStr>>(connect: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::of(&mut command(connect, arguments))
    }

    /// Starts a command.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the process number.
    pub(crate) fn id(&self) -> i32 {
        self.child.id().expect("the run must not have ended").try_into().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Writes to standard input, which must be a pipe.
    pub(crate) async fn write(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
    }

    /// Returns the next line of standard output.
    pub(crate) async fn line(&mut self) -> String {
        self.next_line().await.expect("the run must print another line")
    }

    /// Returns the next line of standard output, or `None` at its end.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line must arrive in time");
        Some(line.unwrap()?.trim_end_matches('\r').to_owned())
    }

    /// Returns the next line, which is a number.
    pub(crate) async fn number(&mut self) -> i32 {
        self.line().await.parse().unwrap()
    }

    /// Waits for the end of the process.
    pub(crate) async fn end(mut self) -> Ended {
        let ended = async {
            let mut stdout = Vec::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                stdout.push(line.trim_end_matches('\r').to_owned());
            }
            let mut stderr = String::new();
            if let Some(mut pipe) = self.child.stderr.take() {
                pipe.read_to_string(&mut stderr).await.unwrap();
            }
            let code = self.child.wait().await.unwrap().code().expect("no signal may have ended the run");
            Ended { code, stdout, stderr }
        };
        timeout(PATIENCE, ended).await.expect("the run must end in time")
    }
}

/// Runs `docent` to its end.
pub(crate) async fn run<A: AsRef<OsStr>>(connect: &str, arguments: impl IntoIterator<Item = A>) -> Ended {
    Run::start(connect, arguments).end().await
}
