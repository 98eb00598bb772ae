use std::path::PathBuf;

/// What is missing to run a real ZooKeeper.
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

/// Why a real server did not start.
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
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it printed.
        log: String,
    },
    /// It was stopped before it served.
    #[error("the server was stopped before it served")]
    Stopped,
    /// No server of an ensemble leads.
    #[error("no server leads within {seconds} s: they are {modes:?}")]
    NoLeader {
        /// How long it was waited for.
        seconds: u64,
        /// What each says that it is.
        modes: Vec<Option<String>>,
    },
    /// It runs but does not serve.
    #[error("the server did not serve within {seconds} s: {log}")]
    Late {
        /// How long it was waited for.
        seconds: u64,
        /// The end of what it printed.
        log: String,
    },
}
