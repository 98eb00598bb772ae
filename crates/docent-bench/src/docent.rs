use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A process that runs `docent`, with its output.
///
/// # On drop
///
/// The process is killed.
#[derive(Debug)]
pub(crate) struct Docent {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Docent {
    pub(crate) fn start(servers: &str, arguments: &[&str]) -> Result<Self> {
        // `cargo xtask bench` builds `docent` into the same folder.
        let mut command = Command::new(std::env::current_exe()?.with_file_name("docent"));
        command.args(["--connect", servers, "-o", "json"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let lines = BufReader::new(child.stdout.take().context("the output is piped")?).lines();
        Ok(Self { child, lines })
    }

    /// Returns the next line that the process prints.
    pub(crate) async fn line(&mut self) -> Result<String> {
        self.lines.next_line().await?.context("docent has ended")
    }

    /// Returns the CPU time of all threads of the process.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut total = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid()?))? {
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            let running = times.split_whitespace().next().context("the kernel reports no times")?;
            total += running.parse::<u64>()?;
        }
        ensure!(total > 0, "the kernel does not measure the times of threads");
        Ok(Duration::from_nanos(total))
    }

    /// Returns the id of the process.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.child.id().context("docent has ended")
    }
}
