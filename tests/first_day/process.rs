use crate::OUTAGE;
use docent_battery::TestServer;
use docent_tests::{PATIENCE, tick, until};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command as Shell, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// The service in a separate process, with its log in a file.
///
/// # On drop
///
/// The process is killed. If the test fails, its log is printed.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    printed: watch::Receiver<Vec<String>>,
}

impl Process {
    /// Starts the service. Its log is called `name`.
    pub(crate) fn start(server: &TestServer, name: &str, session: Duration, operation: Duration) -> Self {
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("first-day-{name}.log"));
        let millis = |time: Duration| format!("{}ms", time.as_millis());
        let mut child = Command::new(env!("CARGO_BIN_EXE_first_day"))
            // The setting of this test is not one of the service.
            .env_remove(OUTAGE)
            .env("DOCENT_CONNECT", server.connect_string())
            .env("DOCENT_NAMESPACE", server.root())
            .env("DOCENT_LABEL", "orders")
            .env("DOCENT_SESSION_TIMEOUT", millis(session))
            .env("DOCENT_OPERATION_TIMEOUT", millis(operation))
            .env("DOCENT_SERVER_TICK", millis(tick()))
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, printed) = watch::channel(Vec::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|lines| lines.push(line));
            }
        });
        Self { child, log, printed }
    }

    /// Returns the number of lines that the service has printed.
    pub(crate) fn printed(&self) -> usize {
        self.printed.borrow().len()
    }

    /// Waits until the service prints a line that starts with `start`, after the first `seen` lines.
    pub(crate) async fn prints_after(&mut self, seen: usize, start: &str) {
        let found = self.printed.wait_for(|lines| lines[seen..].iter().any(|line| line.starts_with(start)));
        let found = timeout(PATIENCE * 2, found).await;
        found
            .unwrap_or_else(|_| panic!("{start:?} is not printed"))
            .unwrap_or_else(|_| panic!("the service has ended"));
    }

    /// Waits until the log contains `text`.
    pub(crate) async fn logs(&self, text: &str) {
        until(async || fs::read_to_string(&self.log).unwrap().contains(text)).await;
    }

    /// Sends SIGTERM, and waits until the process has exited.
    pub(crate) async fn terminate(mut self) -> ExitStatus {
        let id = self.child.id().unwrap().to_string();
        assert!(Shell::new("kill").args(["-TERM", &id]).status().unwrap().success());
        timeout(PATIENCE, self.child.wait()).await.expect("the service ends").unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("{}:\n{log}", self.log.display());
        }
    }
}
