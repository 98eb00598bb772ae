use clap::Args;
use std::ffi::OsString;

/// List the instances of a service; without SERVICE the names of all services.
///
/// `-o hostport` prints the instances that may be given work, one `host:port` on each line: the port is that
/// for TLS where an instance has one.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the service
    pub(super) service: Option<String>,

    /// Folder of the services
    #[arg(long, value_name = "PATH", default_value = "/services")]
    pub(super) root: String,

    /// Go on, and print all instances again after each change
    ///
    /// With `-o hostport` an empty line follows each time: the lines since the last one are all instances.
    #[arg(short, long, requires = "service")]
    pub(super) watch: bool,

    /// Run a command now and after each change, with a `host:port` line for each instance on standard input
    ///
    /// Whatever follows is the command and its arguments. It finds DOCENT_PATH in its environment. A change
    /// that comes while it runs is told when it has ended. A command that fails ends nothing; one that cannot
    /// be run ends docent with 126 or 127.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, requires = "service")]
    pub(super) exec: Vec<OsString>,
}
