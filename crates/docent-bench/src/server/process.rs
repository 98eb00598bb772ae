use anyhow::{Context, Result};
use docent_battery::{RealServer, ServerOptions};
use std::fmt;
use std::net::SocketAddr;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Server that takes part in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Embedded,
    Real,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Embedded, Self::Real];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Embedded => "embedded server",
            Self::Real => "real ZooKeeper",
        })
    }
}

/// A server in a separate process, so its memory can be measured.
///
/// # On drop
///
/// The process is killed.
#[derive(Debug)]
pub(crate) struct Process {
    address: SocketAddr,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Embedded(Child),
    Real(RealServer),
}

impl Process {
    pub(crate) async fn start(kind: Kind) -> Result<Self> {
        match kind {
            Kind::Embedded => Self::embedded().await,
            Kind::Real => {
                let server = RealServer::start_with(ServerOptions::default().long_lived(true)).await?;
                Ok(Self { address: server.address(), running: Running::Real(server) })
            }
        }
    }

    /// Starts this program again, as a server.
    async fn embedded() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut line = String::new();
        let output = child.stdout.as_mut().context("the server's output is piped")?;
        BufReader::new(output).read_line(&mut line).await?;
        let address = line
            .trim()
            .parse()
            .with_context(|| format!("the server printed {line:?} instead of its address"))?;
        Ok(Self { address, running: Running::Embedded(child) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resident memory of the process in megabytes.
    pub(crate) fn megabytes(&self) -> Result<f64> {
        let pid = match &self.running {
            Running::Embedded(child) => child.id(),
            Running::Real(server) => server.pid(),
        };
        let pid = pid.context("the server has ended")?;
        megabytes(pid)
    }
}

/// Resident memory of a process in megabytes.
pub(crate) fn megabytes(pid: u32) -> Result<f64> {
    resident(&std::fs::read_to_string(format!("/proc/{pid}/status"))?)
}

/// Returns the resident megabytes from the kernel's status file.
fn resident(status: &str) -> Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_megabytes() {
        let status = "VmHWM:\t   9000 kB\nVmRSS:\t   2560 kB\nRssAnon:\t 100 kB\n";
        assert_eq!(resident(status).unwrap(), 2.5);
        assert!(resident("Name:\tdocent\n").is_err());
    }
}
