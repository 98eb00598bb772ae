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

/// How copies are started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// This program.
    pub program: PathBuf,
    /// Their servers.
    pub coordination: Coordination,
    /// Folder for their database and their logs.
    pub folder: PathBuf,
}

impl Launch {
    /// File of the database.
    pub fn database(&self) -> PathBuf {
        self.folder.join("shop.db")
    }

    /// File of a copy's log, which is kept when it is started again.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }
}

/// A copy that runs.
///
/// # On drop
/// It is killed. When this process is, the copy's leash ends, and it stops by itself.
#[derive(Debug)]
pub struct Copy {
    name: String,
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    _leash: ChildStdin,
}

impl Copy {
    /// Starts a copy, and waits until it listens.
    ///
    /// # Errors
    /// When it does not, with its log.
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
        let leash = child.stdin.take().context("a copy has no standard input")?;
        let mut said = BufReader::new(child.stdout.take().context("a copy has no standard output")?).lines();
        let Some(line) = said.next_line().await? else {
            return Err(anyhow!("{name} did not start:\n{}", fs::read_to_string(launch.log(name))?));
        };
        let address = line.rsplit(' ').next().unwrap_or_default().parse().context(line.clone())?;
        Ok(Self { name: name.to_owned(), child, said, address, _leash: leash })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(kill_process(id.with_context(|| format!("{} has ended", self.name))?, signal)?)
    }

    /// Waits until it has ended. Returns the last line that it said, and how it ended.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn ended(mut self) -> anyhow::Result<(Option<String>, ExitStatus)> {
        let mut last = None;
        while let Some(line) = self.said.next_line().await? {
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
    /// No copies yet.
    pub fn new(launch: Launch) -> Self {
        Self { launch, copies: BTreeMap::new() }
    }

    /// How they are started.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Starts a copy.
    ///
    /// # Errors
    /// As [`Copy::start`].
    pub async fn open(&mut self, name: &str) -> anyhow::Result<SocketAddr> {
        let copy = Copy::start(&self.launch, name).await?;
        let address = copy.address();
        self.copies.insert(name.to_owned(), copy);
        Ok(address)
    }

    /// A copy that runs.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn copy(&self, name: &str) -> anyhow::Result<&Copy> {
        self.copies.get(name).with_context(|| format!("{name} is not open"))
    }

    /// Kills a copy, in a way that it cannot notice.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.copy(name)?.signal(Signal::KILL)?;
        self.take(name)?.ended().await?;
        Ok(())
    }

    /// Asks a copy to stop (SIGTERM), waits until it did, and returns what it said last.
    ///
    /// # Errors
    /// When it ends otherwise.
    pub async fn stop(&mut self, name: &str) -> anyhow::Result<String> {
        self.copy(name)?.signal(Signal::TERM)?;
        self.ended(name).await
    }

    /// Waits until a copy that was asked to stop did, and returns what it said last.
    ///
    /// # Errors
    /// When it ends otherwise.
    pub async fn ended(&mut self, name: &str) -> anyhow::Result<String> {
        let (said, status) = self.take(name)?.ended().await?;
        ensure!(status.success(), "{name} ended with {status}");
        said.with_context(|| format!("{name} said nothing"))
    }

    fn take(&mut self, name: &str) -> anyhow::Result<Copy> {
        self.copies.remove(name).with_context(|| format!("{name} is not open"))
    }
}
