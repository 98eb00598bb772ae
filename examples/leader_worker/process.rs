use crate::cli::Seat;
use anyhow::{Context, ensure};
use docent::Fence;
use std::env;
use std::io::{self, Write, stdout};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// What a worker tells its parent, one line each on its standard output: it did a piece of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) fence: Fence,
    pub(crate) number: u64,
}

impl Done {
    pub(crate) fn print(&self) -> io::Result<()> {
        writeln!(stdout(), "{} {} {}", self.name, self.fence, self.number)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let words: Vec<_> = text.split(' ').collect();
        let [name, fence, number] = words[..] else { anyhow::bail!("a worker said {text:?}") };
        Ok(Self { name: name.to_owned(), fence: fence.parse()?, number: number.parse()? })
    }
}

/// A worker that this process started.
///
/// On drop it is killed. When this process ends in another way, the pipe closes and the worker stops by itself.
pub(crate) struct Process {
    child: Child,
    leash: ChildStdin,
}

impl Process {
    /// Starts this program as a worker. What it says goes to `done`.
    pub(crate) fn start(
        seat: &Seat,
        name: &str,
        done: mpsc::Sender<anyhow::Result<Done>>,
    ) -> anyhow::Result<Self> {
        let (tick, session) = (seat.tick_ms.to_string(), seat.session_ms.to_string());
        let mut child = Command::new(env::current_exe()?)
            .args(["worker", "--name", name, "--connect", &seat.connect, "--tick-ms", &tick])
            .args(["--session-ms", &session, "--election", &seat.election, "--job", &seat.job])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let leash = child.stdin.take().context("a process has no standard input")?;
        let output = child.stdout.take().context("a process has no standard output")?;
        tokio::spawn(listen(output, done));
        Ok(Self { child, leash })
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills it, in a way that it cannot notice.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// Asks it to stop, and waits until it did, and well.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.leash);
        let status = self.child.wait().await?;
        ensure!(status.success(), "a worker failed: {status}");
        Ok(())
    }
}

async fn listen(output: ChildStdout, done: mpsc::Sender<anyhow::Result<Done>>) {
    let mut output = BufReader::new(output).lines();
    while let Some(read) = output.next_line().await.transpose() {
        let line = read.map_err(Into::into).and_then(|text| Done::parse(&text));
        if done.send(line).await.is_err() {
            return;
        }
    }
}

/// Resolves when the parent closes the other end, or is gone.
pub(crate) async fn until_input_ends() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}
