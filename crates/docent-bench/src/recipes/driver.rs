use super::order::Answer;
use super::side::Side;
use anyhow::{Context, Result, bail, ensure};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Maximum duration of an order.
const PATIENCE: Duration = Duration::from_secs(180);

/// Point in time of an order that its driver reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The measured part begins.
    Start,
    /// The measured part has ended.
    Stop,
}

/// Process that carries out orders with the recipes of one library, one at a time. An order is one line on
/// its standard input. The driver answers with the lines `start`, `stop` and `ok KEY=NUMBER …` or `error
/// WORDS`.
///
/// # On drop
///
/// The process is killed. It also exits when its input ends.
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
    ///
    /// Fails if the driver does not start.
    pub(super) async fn start(side: Side, mut command: Command) -> Result<Self> {
        command.process_group(0).kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("cannot run {:?}", command.as_std()))?;
        let input = process.stdin.take().context("the driver's input is piped")?;
        let output = process.stdout.take().context("the driver's output is piped")?;
        let mut driver = Self { side, process, input, output: BufReader::new(output).lines() };
        let first = driver.line().await?;
        ensure!(first == "ready", "the driver of {side} printed {first:?} instead of `ready`");
        Ok(driver)
    }

    /// The id of the process.
    ///
    /// # Errors
    ///
    /// Fails if the process has ended.
    pub(super) fn pid(&self) -> Result<u32> {
        self.process.id().with_context(|| format!("the driver of {} has ended", self.side))
    }

    /// Sends an order to the driver and waits for its answer. Calls `mark` at each point in time that the
    /// driver reports.
    ///
    /// # Errors
    ///
    /// Fails if the driver fails or does not answer in time.
    pub(super) async fn run(&mut self, order: &str, mut mark: impl FnMut(Mark)) -> Result<Answer> {
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
        match line
            .with_context(|| format!("the driver of {} printed nothing for {PATIENCE:?}", self.side))??
        {
            Some(line) => Ok(line),
            None => bail!("the driver of {} ended", self.side),
        }
    }
}
