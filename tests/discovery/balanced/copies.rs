use docent_battery::TestServer;
use docent_tests::{SESSION, soon, tick};
use std::process::{Command as Plain, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A process with a copy of the service `orders`. It is killed on drop.
pub(super) struct Copy {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Copy {
    /// Starts a copy that answers after `delay` milliseconds, and waits until it is registered.
    pub(super) async fn start(server: &TestServer, id: &str, kind: &str, delay: u64) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_copy"));
        command.args([&server.connect_string(), server.root()]);
        command.args([SESSION, tick()].map(|time| time.as_millis().to_string()));
        command.args([id, kind, &delay.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut copy = Self { process, input, lines: BufReader::new(output).lines() };
        assert_eq!(copy.next_line().await.as_deref(), Some("ready"));
        copy
    }

    /// Starts three copies: `a`, `b` and `c`.
    pub(super) async fn three(server: &TestServer, kind: &str) -> [Self; 3] {
        [
            Self::start(server, "a", kind, 0).await,
            Self::start(server, "b", kind, 0).await,
            Self::start(server, "c", kind, 0).await,
        ]
    }

    async fn next_line(&mut self) -> Option<String> {
        soon(self.lines.next_line()).await.unwrap()
    }

    /// Kills the process with SIGKILL, as a crash would.
    pub(super) fn kill(&mut self) {
        self.process.start_kill().unwrap();
    }

    /// Waits until the process has exited.
    pub(super) async fn ended(&mut self) {
        soon(self.process.wait()).await.unwrap();
    }

    /// Stops the process with SIGSTOP: its connections stay open, but no request is answered.
    pub(super) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes the process with SIGCONT.
    pub(super) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().unwrap().to_string();
        assert!(Plain::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Drains the copy, and waits until its process has exited.
    pub(super) async fn drain(mut self) {
        self.input.write_all(b"drain\n").await.unwrap();
        assert_eq!(self.next_line().await.as_deref(), Some("drained"));
        self.ended().await;
    }
}
