use std::path::PathBuf;

/// Software that is missing to run a real ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// No Java runtime.
    #[error("no java: install libzookeeper-java and default-jre-headless, or set JAVA_HOME")]
    Java,
    /// No ZooKeeper.
    #[error("no {0}: install libzookeeper-java and default-jre-headless, or set ZOOKEEPER_HOME")]
    Debian(PathBuf),
    /// `ZOOKEEPER_HOME` is set, but there is no ZooKeeper in it.
    #[error(
        "ZOOKEEPER_HOME is {0:?}, which has no lib/zookeeper-*.jar: set it to an unpacked binary distribution"
    )]
    Home(PathBuf),
}

/// Reason why a real server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It is not installed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file, a port or the process.
    #[error("could not start the server: {0}")]
    Io(#[from] std::io::Error),
    /// The process ended before it served.
    #[error("the server ended at start ({status}): {log}")]
    Ended {
        /// Status of its end.
        status: std::process::ExitStatus,
        /// The end of its output.
        log: String,
    },
    /// It was stopped before it served.
    #[error("the server was stopped before it served")]
    Stopped,
    /// No server of an ensemble leads.
    #[error("no server leads within {seconds} s: they are {modes:?}")]
    NoLeader {
        /// Time waited for it.
        seconds: u64,
        /// Mode that each reports.
        modes: Vec<Option<String>>,
    },
    /// It runs but does not serve.
    #[error("the server did not serve within {seconds} s: {log}")]
    Late {
        /// Time waited for it.
        seconds: u64,
        /// The end of its output.
        log: String,
    },
}
