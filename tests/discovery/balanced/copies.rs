use docent_battery::TestServer;
use docent_tests::{SESSION, soon, tick};
use std::process::{Command as Plain, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Process with a copy of the service `orders`, which is killed when this is dropped.
pub(super) struct Copy {
    process: Child,
    input: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Copy {
    /// Starts one that answers after so many milliseconds, and waits until it is registered.
    pub(super) async fn start(server: &TestServer, id: &str, kind: &str, delay: u64) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_copy"));
        command.args([&server.connect_string(), server.root()]);
        command.args([SESSION, tick()].map(|time| time.as_millis().to_string()));
        command.args([id, kind, &delay.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut copy = Self { process, input, said: BufReader::new(output).lines() };
        assert_eq!(copy.says().await.as_deref(), Some("ready"));
        copy
    }

    /// Three copies: `a`, `b` and `c`.
    pub(super) async fn three(server: &TestServer, kind: &str) -> [Self; 3] {
        [
            Self::start(server, "a", kind, 0).await,
            Self::start(server, "b", kind, 0).await,
            Self::start(server, "c", kind, 0).await,
        ]
    }

    async fn says(&mut self) -> Option<String> {
        soon(self.said.next_line()).await.unwrap()
    }

    /// Ends it as a crash does (SIGKILL).
    pub(super) fn kill(&mut self) {
        self.process.start_kill().unwrap();
    }

    /// Waits until its process has ended.
    pub(super) async fn ended(&mut self) {
        soon(self.process.wait()).await.unwrap();
    }

    /// Stops it in its tracks (SIGSTOP): its connections stay open, and nothing is answered.
    pub(super) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on (SIGCONT).
    pub(super) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().unwrap().to_string();
        assert!(Plain::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Has it leave in order, and waits until its process has ended.
    pub(super) async fn drain(mut self) {
        self.input.write_all(b"drain\n").await.unwrap();
        assert_eq!(self.says().await.as_deref(), Some("drained"));
        self.ended().await;
    }
}
