use clap::Args;
use std::ffi::OsString;

/// List the instances of a service; without SERVICE, list the names of all services.
///
/// `-o hostport` prints the instances that may be given work, one `host:port` per line. The port is the TLS
/// port if the instance has one.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the service
    pub(super) service: Option<String>,

    /// Parent folder of the services
    #[arg(long, value_name = "PATH", default_value = "/services")]
    pub(super) root: String,

    /// Keep running, and print all instances again after each change
    ///
    /// With `-o hostport`, an empty line ends each list: the lines since the previous empty line are all
    /// instances.
    #[arg(short, long, requires = "service")]
    pub(super) watch: bool,

    /// Run a command now and after each change, with a `host:port` line for each instance on standard input
    ///
    /// All arguments that follow are the command and its arguments. DOCENT_PATH is set in its environment. A
    /// change that occurs while the command runs is handled when it has ended. docent continues if the
    /// command fails, but ends with 126 or 127 if the command cannot be run.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, requires = "service")]
    pub(super) exec: Vec<OsString>,
}
