use anyhow::{Context, ensure};
use std::env;
use std::ffi::OsStr;
use std::io;
use std::process::Stdio;
use std::str::FromStr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// A process that this one started.
///
/// # On drop
/// The process is killed. If this process ends in another way, the pipe closes: see [`until_input_ends`].
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: ChildStdin,
}

impl Process {
    /// Starts this program in another role. Each line of its standard output is sent to `lines`.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start<T>(
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        lines: mpsc::Sender<anyhow::Result<T>>,
    ) -> anyhow::Result<Self>
    where
        T: FromStr<Err: Into<anyhow::Error>> + Send + 'static,
    {
        let mut child = Command::new(env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("a process has no standard input")?;
        let output = child.stdout.take().context("a process has no standard output")?;
        tokio::spawn(listen(output, lines));
        Ok(Self { child, input })
    }

    /// Returns the process id, while the process is running.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills the process, without giving it a chance to react.
    ///
    /// # Errors
    /// If the process has already ended.
    pub async fn kill(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// Waits until the process has ended successfully on its own.
    ///
    /// # Errors
    /// If the process failed.
    pub async fn ended(mut self) -> anyhow::Result<()> {
        let status = self.child.wait().await?;
        ensure!(status.success(), "a process failed: {status}");
        Ok(())
    }

    /// Asks the process to stop, and waits until it has ended successfully.
    ///
    /// # Errors
    /// If the process failed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.input);
        let status = self.child.wait().await?;
        ensure!(status.success(), "a process failed: {status}");
        Ok(())
    }
}

async fn listen<T>(output: ChildStdout, lines: mpsc::Sender<anyhow::Result<T>>)
where
    T: FromStr<Err: Into<anyhow::Error>>,
{
    let mut output = BufReader::new(output).lines();
    while let Some(read) = output.next_line().await.transpose() {
        let line = read.map_err(Into::into).and_then(|text| text.parse().map_err(Into::into));
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

/// Resolves when the process that started this one asks it to stop, or has exited.
pub async fn until_input_ends() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}
