use super::order::Answer;
use super::side::Side;
use anyhow::{Context, Result, bail, ensure};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Longer than any order takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// Moment of an order that its driver tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The measured part begins.
    Start,
    /// The measured part has ended.
    Stop,
}

/// Process that carries out orders with the recipes of one library, one at a time: each is a line on its
/// standard input, and answered by the lines `start`, `stop` and `ok KEY=NUMBER …` or `error WORDS`.
///
/// # On drop
/// The process is killed. It also ends with its input.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) side: Side,
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Driver {
    /// Starts a driver and waits for its line `ready`.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) async fn start(side: Side, mut command: Command) -> Result<Self> {
        command.process_group(0).kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("cannot run {:?}", command.as_std()))?;
        let input = process.stdin.take().context("its input is piped")?;
        let output = process.stdout.take().context("its output is piped")?;
        let mut driver = Self { side, process, input, output: BufReader::new(output).lines() };
        let first = driver.line().await?;
        ensure!(first == "ready", "the driver of {side} said {first:?} in place of `ready`");
        Ok(driver)
    }

    /// Id of the process.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn pid(&self) -> Result<u32> {
        self.process.id().with_context(|| format!("the driver of {} has ended", self.side))
    }

    /// Has it carry out an order. `mark` is called at its moments.
    ///
    /// # Errors
    /// When it fails, or takes too long.
    pub(super) async fn ask(&mut self, order: &str, mut mark: impl FnMut(Mark)) -> Result<Answer> {
        self.input.write_all(format!("{order}\n").as_bytes()).await?;
        loop {
            match self.line().await?.as_str() {
                "start" => mark(Mark::Start),
                "stop" => mark(Mark::Stop),
                line => return Answer::parse(line).with_context(|| format!("{}: {order}", self.side)),
            }
        }
    }

    async fn line(&mut self) -> Result<String> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
        match line.with_context(|| format!("{} says nothing for {PATIENCE:?}", self.side))?? {
            Some(line) => Ok(line),
            None => bail!("the driver of {} ended", self.side),
        }
    }
}
