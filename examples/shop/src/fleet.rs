//! Copies of the shop as processes.

use crate::settings::Coordination;
use anyhow::{Context, anyhow, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Settings with which copies are started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Path of this program.
    pub program: PathBuf,
    /// Servers that the copies use.
    pub coordination: Coordination,
    /// Folder for the copies' database and logs.
    pub folder: PathBuf,
}

impl Launch {
    /// Returns the file of the database.
    pub fn database(&self) -> PathBuf {
        self.folder.join("shop.db")
    }

    /// Returns the log file of a copy, which is kept when the copy is restarted.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }
}

/// A running copy.
///
/// # On drop
/// The copy is killed. If this process is killed, the copy's standard input ends, and the copy stops on its
/// own.
#[derive(Debug)]
pub struct Copy {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    _input: ChildStdin,
}

impl Copy {
    /// Starts a copy, and waits until it listens.
    ///
    /// # Errors
    /// If the copy does not listen; the error contains its log.
    pub async fn start(launch: &Launch, name: &str) -> anyhow::Result<Self> {
        let log = File::options().create(true).append(true).open(launch.log(name))?;
        let mut child = Command::new(&launch.program)
            .args(["serve", "--leash", "--name", name])
            .args(launch.coordination.arguments())
            .arg("--database")
            .arg(launch.database())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("a copy has no standard input")?;
        let mut lines = BufReader::new(child.stdout.take().context("a copy has no standard output")?).lines();
        let Some(line) = lines.next_line().await? else {
            return Err(anyhow!("{name} did not start:\n{}", fs::read_to_string(launch.log(name))?));
        };
        let address = line.rsplit(' ').next().unwrap_or_default().parse().context(line.clone())?;
        Ok(Self { name: name.to_owned(), child, lines, address, _input: input })
    }

    /// Returns the address on which the copy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a signal to the copy.
    ///
    /// # Errors
    /// If the copy has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(kill_process(id.with_context(|| format!("{} has ended", self.name))?, signal)?)
    }

    /// Waits until the copy has ended. Returns the last line of its output, and its exit status.
    ///
    /// # Errors
    /// If waiting for the process fails.
    pub async fn ended(mut self) -> anyhow::Result<(Option<String>, ExitStatus)> {
        let mut last = None;
        while let Some(line) = self.lines.next_line().await? {
            last = Some(line);
        }
        Ok((last, self.child.wait().await?))
    }
}

/// All copies, by name.
#[derive(Debug)]
pub struct Fleet {
    launch: Launch,
    copies: BTreeMap<String, Copy>,
}

impl Fleet {
    /// Creates a fleet without copies.
    pub fn new(launch: Launch) -> Self {
        Self { launch, copies: BTreeMap::new() }
    }

    /// Returns the settings with which the copies are started.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Starts a copy.
    ///
    /// # Errors
    /// Those of [`Copy::start`].
    pub async fn open(&mut self, name: &str) -> anyhow::Result<SocketAddr> {
        let copy = Copy::start(&self.launch, name).await?;
        let address = copy.address();
        self.copies.insert(name.to_owned(), copy);
        Ok(address)
    }

    /// Returns a running copy.
    ///
    /// # Errors
    /// If there is no copy of this name.
    pub fn copy(&self, name: &str) -> anyhow::Result<&Copy> {
        self.copies.get(name).with_context(|| format!("{name} is not running"))
    }

    /// Kills a copy, without giving it a chance to react.
    ///
    /// # Errors
    /// If the copy has ended.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.copy(name)?.signal(Signal::KILL)?;
        self.take(name)?.ended().await?;
        Ok(())
    }

    /// Asks a copy to stop (SIGTERM), waits until it has ended, and returns the last line of its output.
    ///
    /// # Errors
    /// If the copy does not end successfully.
    pub async fn stop(&mut self, name: &str) -> anyhow::Result<String> {
        self.copy(name)?.signal(Signal::TERM)?;
        self.ended(name).await
    }

    /// Waits until a copy that was asked to stop has ended, and returns the last line of its output.
    ///
    /// # Errors
    /// If the copy does not end successfully.
    pub async fn ended(&mut self, name: &str) -> anyhow::Result<String> {
        let (last_line, status) = self.take(name)?.ended().await?;
        ensure!(status.success(), "{name} ended with {status}");
        last_line.with_context(|| format!("{name} printed nothing"))
    }

    fn take(&mut self, name: &str) -> anyhow::Result<Copy> {
        self.copies.remove(name).with_context(|| format!("{name} is not running"))
    }
}
