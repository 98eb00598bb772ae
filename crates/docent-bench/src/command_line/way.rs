use anyhow::{Context, Result, ensure};
use docent_battery::Java;
use std::fmt;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Way for a script to hold a lock while it runs `true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `docent lock PATH -- true`.
    Docent,
    /// A program that waits for each reply before it sends the next request.
    Sequential,
    /// One call of ZooKeeper's own shell. A lock takes several.
    ZkCli,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Docent, Self::Sequential, Self::ZkCli];

    /// Runs the command once, and returns the time from start to exit.
    pub(super) fn measure(self, server: SocketAddr) -> Result<Duration> {
        let mut command = self.command(server)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
        let took = started.elapsed();
        ensure!(status.success(), "{command:?} ended with {status}");
        Ok(took)
    }

    fn command(self, server: SocketAddr) -> Result<Command> {
        let server = server.to_string();
        let bench = std::env::current_exe()?;
        Ok(match self {
            Self::Docent => {
                // `cargo xtask bench command-line` builds `docent` into the same folder.
                let mut command = Command::new(bench.with_file_name("docent"));
                command.args(["--connect", &server, "lock", "/bench/command", "--", "true"]);
                command
            }
            Self::Sequential => {
                let mut command = Command::new(bench);
                command.args(["sequential-lock", &server]);
                command
            }
            Self::ZkCli => {
                let mut command = Java::find()?.command();
                command.args(["org.apache.zookeeper.ZooKeeperMain", "-server", &server]);
                command.args(["create", "-s", "-e", "/bench/shell-"]);
                command
            }
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Docent => "docent lock -- true",
            Self::Sequential => "one call after the other",
            Self::ZkCli => "one call of zkCli",
        })
    }
}
