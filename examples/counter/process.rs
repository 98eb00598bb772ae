use crate::cli::{Job, Role};
use anyhow::{Context, ensure};
use docent::Fence;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write, stdin, stdout};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// What a process tells its parent, one line each on its standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// It added 1 under this fence.
    Done(Fence),
    /// It holds the lock.
    Holding(Fence),
}

impl Line {
    pub(crate) fn print(self) -> io::Result<()> {
        match self {
            Self::Done(fence) => writeln!(stdout(), "done {fence}"),
            Self::Holding(fence) => writeln!(stdout(), "holding {fence}"),
        }
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        match text.split_once(' ') {
            Some(("done", fence)) => Ok(Self::Done(fence.parse()?)),
            Some(("holding", fence)) => Ok(Self::Holding(fence.parse()?)),
            _ => anyhow::bail!("a process said {text:?}"),
        }
    }
}

/// A process that this one started.
///
/// On drop it is killed. When this process ends in another way, the pipe closes and the other ends by itself.
pub(crate) struct Process {
    child: Child,
    _leash: ChildStdin,
}

impl Process {
    /// Starts this program in another role. What it says goes to `lines`.
    pub(crate) fn start(role: &Role, lines: mpsc::Sender<anyhow::Result<Line>>) -> anyhow::Result<Self> {
        let program = env::current_exe()?;
        let mut child = Command::new(program)
            .args(arguments(role))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let leash = child.stdin.take().context("a process has no standard input")?;
        let output = child.stdout.take().context("a process has no standard output")?;
        tokio::spawn(listen(output, lines));
        Ok(Self { child, _leash: leash })
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills it, in a way that it cannot notice.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// Waits until it ended by itself, and well.
    pub(crate) async fn ended(mut self) -> anyhow::Result<()> {
        let status = self.child.wait().await?;
        ensure!(status.success(), "a process failed: {status}");
        Ok(())
    }
}

async fn listen(output: ChildStdout, lines: mpsc::Sender<anyhow::Result<Line>>) {
    let mut output = BufReader::new(output).lines();
    while let Some(read) = output.next_line().await.transpose() {
        let line = read.map_err(Into::into).and_then(|text| Line::parse(&text));
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

fn arguments(role: &Role) -> Vec<OsString> {
    match role {
        Role::Worker { job, increments } => {
            [named("worker", job), vec!["--increments".into(), increments.to_string().into()]].concat()
        }
        Role::Victim { job } => named("victim", job),
    }
}

fn named(role: &str, job: &Job) -> Vec<OsString> {
    let (tick, session) = (job.tick_ms.to_string(), job.session_ms.to_string());
    let flags: [(&str, OsString); 5] = [
        ("--connect", job.connect.clone().into()),
        ("--tick-ms", tick.into()),
        ("--session-ms", session.into()),
        ("--lock", job.lock.clone().into()),
        ("--file", job.file.clone().into()),
    ];
    let flags = flags.into_iter().flat_map(|(flag, value)| [flag.into(), value]);
    std::iter::once(role.into()).chain(flags).collect()
}

/// Ends this process when its standard input does: the parent is gone then, and cannot remove the file any more.
///
/// A thread, and not a task: it works whatever the tasks do, and the runtime does not wait for it at the end.
pub(crate) fn end_with_the_parent(file: &Path) {
    let file = file.to_owned();
    thread::spawn(move || {
        let _ = io::copy(&mut stdin().lock(), &mut io::sink());
        let _ = fs::remove_file(file);
        std::process::exit(1);
    });
}
