use docent_battery::TestServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Maximum time that a command may take, which only one without an end reaches, also on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A finished run of `docent`.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the servers and chroot of a test for `--connect`, bypassing its proxy.
pub(crate) fn servers(server: &TestServer) -> String {
    format!("{}{}", server.address(), server.root())
}

/// Returns `docent` with these arguments, and an environment without settings, killed on drop. No signal is
/// ignored from the start, whatever runs the tests.
pub(crate) fn docent<A: AsRef<OsStr>>(connect: &str, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_docent")]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("DOCENT_CONNECT", connect).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs `docent` to its end.
pub(crate) async fn run<A: AsRef<OsStr>>(connect: &str, arguments: impl IntoIterator<Item = A>) -> Ended {
    let output =
        timeout(PATIENCE, docent(connect, arguments).output()).await.expect("the run must end in time");
    Ended::of(output.unwrap())
}

/// Runs `docent` to its end with `input` on its standard input.
pub(crate) async fn run_with<A: AsRef<OsStr>>(
    connect: &str,
    arguments: impl IntoIterator<Item = A>,
    input: &str,
) -> Ended {
    let mut child = docent(connect, arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    if let Err(error) = stdin.write_all(input.as_bytes()).await {
        // The command may have refused earlier input already.
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
    }
    drop(stdin);
    end(child).await
}

/// Waits for the end of a run.
pub(crate) async fn end(child: Child) -> Ended {
    Ended::of(timeout(PATIENCE, child.wait_with_output()).await.expect("the run must end in time").unwrap())
}

impl Ended {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Returns the same run if it succeeded.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Returns the output lines as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A run that keeps running, whose lines are read one by one. It is killed on drop.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start<A: AsRef<OsStr>>(connect: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::spawn(&mut docent(connect, arguments))
    }

    /// Starts a run whose standard input stays open, and returns once the run reads: the input is larger than
    /// a pipe holds.
    pub(crate) async fn start_reading<A: AsRef<OsStr>>(
        connect: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> (Self, ChildStdin) {
        let mut running = Self::spawn(docent(connect, arguments).stdin(Stdio::piped()));
        let mut stdin = running.child.stdin.take().unwrap();
        let input = vec![b'7'; 512 << 10];
        timeout(PATIENCE, stdin.write_all(&input)).await.expect("the run must read its input").unwrap();
        (running, stdin)
    }

    /// Starts a run of this command.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the next line of standard output.
    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line must arrive in time");
        line.unwrap().expect("the run must continue")
    }

    /// Returns the lines of standard error.
    pub(crate) fn remarks(&mut self) -> Remarks {
        Remarks(BufReader::new(self.child.stderr.take().unwrap()).lines())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, and returns the exit code, or -1 if a signal ended the run.
    pub(crate) async fn end(mut self) -> i32 {
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the run must end in time").unwrap();
        status.code().unwrap_or(-1)
    }

    /// Sends a signal, and waits for the end.
    pub(crate) async fn stop(self, signal: Signal) -> i32 {
        self.signal(signal);
        self.end().await
    }
}

/// Lines of a run's standard error.
#[derive(Debug)]
pub(crate) struct Remarks(Lines<BufReader<ChildStderr>>);

impl Remarks {
    /// Reads up to a line that contains `text`, and returns that line.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let line = timeout(PATIENCE, self.0.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("{text:?} is missing in {seen:?}")).unwrap();
            let line = line.unwrap_or_else(|| panic!("the run has ended without {text:?}: {seen:?}"));
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
    }
}
