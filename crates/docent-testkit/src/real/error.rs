use docent_core::{Error, ErrorKind};
use std::path::PathBuf;

/// Software that is missing to run a real ZooKeeper server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// There is no Java runtime.
    #[error("no Java runtime found: install libzookeeper-java and default-jre-headless, or set JAVA_HOME")]
    Java,
    /// There is no ZooKeeper.
    #[error("{0} is missing: install libzookeeper-java and default-jre-headless, or set ZOOKEEPER_HOME")]
    Debian(PathBuf),
    /// `ZOOKEEPER_HOME` is set, but contains no ZooKeeper.
    #[error(
        "ZOOKEEPER_HOME is {0:?}, which has no lib/zookeeper-*.jar: set it to an unpacked binary distribution"
    )]
    Home(PathBuf),
}

/// Error of starting a real server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The required software is not installed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file, a port or the process failed.
    #[error("cannot start the server: {0}")]
    Io(#[from] std::io::Error),
    /// The process exited before it served.
    #[error("the server exited during its start ({status}): {log}")]
    Ended {
        /// Exit status of the process.
        status: std::process::ExitStatus,
        /// The end of its output.
        log: String,
    },
    /// The server was stopped before it served.
    #[error("the server was stopped before it served")]
    Stopped,
    /// No server of an ensemble leads.
    #[error("no server became the leader within {seconds} s; their modes are {modes:?}")]
    NoLeader {
        /// Time waited, in seconds.
        seconds: u64,
        /// Mode that each server reports.
        modes: Vec<Option<String>>,
    },
    /// The process runs but does not serve.
    #[error("the server did not serve within {seconds} s: {log}")]
    Late {
        /// Time waited, in seconds.
        seconds: u64,
        /// The end of its output.
        log: String,
    },
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        let kind = match error {
            StartError::Missing(_) => ErrorKind::Unsupported,
            StartError::Stopped => ErrorKind::Closed,
            _ => ErrorKind::Unavailable,
        };
        Self::of_recipe(kind, "start", error)
    }
}
