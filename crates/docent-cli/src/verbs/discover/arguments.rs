use super::template::Template;
use clap::{Args, ValueEnum};
use docent::discovery::RegistryLayout;
use std::ffi::OsString;
use std::path::PathBuf;

/// List the instances of a service; without SERVICE, list the names of all services.
///
/// docent prints an empty list and exits with 66 if the service does not exist. A service can exist without
/// instances.
///
/// `-o hostport` prints the instances that may be given work, one `host:port` per line. `-o file-sd` prints
/// the same instances as a JSON list for Prometheus. The port is the TLS port if the instance has one. Both
/// formats skip and report an instance whose host is neither a name of ASCII letters, digits, `.`, `-` and
/// `_` nor an IP address.
///
/// With `-o file-sd`, the labels are `__meta_docent_service`, `__meta_docent_id`, `__meta_docent_scheme` and
/// `__meta_docent_payload_NAME` for each text, number and boolean in the payload.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the service
    pub(super) service: Option<String>,

    /// Parent folder of the services
    #[arg(long, value_name = "PATH", default_value = "/services")]
    pub(super) root: String,

    /// Layout of the services; in Dubbo's, the parent folder is usually /dubbo, and the weight and the state
    /// of an instance are those after Dubbo's rules
    #[arg(long, value_name = "NAME", default_value = "curator")]
    pub(super) layout: Layout,

    /// Exit with 75 if fewer than N instances may be given work; the instances are printed in any case
    #[arg(long, value_name = "N", requires = "service", conflicts_with_all = ["watch", "write", "exec"])]
    pub(super) at_least: Option<usize>,

    /// Keep running, and print all instances again after each change
    ///
    /// With `-o hostport`, an empty line ends each list: the lines since the previous empty line are all
    /// instances.
    #[arg(short, long, requires = "service")]
    pub(super) watch: bool,

    /// Line for each instance with `-o hostport`, such as 'server {host}:{port};' [default: {host}:{port}]
    ///
    /// The placeholders are `{host}`, with brackets around an IPv6 address, `{port}` and `{id}`, the name of
    /// the instance's node. `{{` and `}}` are braces. With `{id}`, an instance is skipped and reported if its
    /// id has other characters than ASCII letters, digits, `.`, `_`, `-` and `:`.
    #[arg(long, value_name = "TEMPLATE", requires = "service")]
    pub(super) format: Option<Template>,

    /// First line of each list with `-o hostport`, such as 'backend orders'
    #[arg(long, value_name = "LINE", requires = "service")]
    pub(super) header: Option<String>,

    /// Keep running, and replace FILE by the list now and after each change; prints nothing
    ///
    /// Needs `-o hostport` or `-o file-sd`. The file is replaced atomically and only if its content differs.
    /// It keeps its mode. If it is a symbolic link, the file that it points to is replaced. A failed write is
    /// reported and repeated. While no server is reachable, the file stays unchanged. For Prometheus, its
    /// name must end with `.json`.
    #[arg(long, value_name = "FILE", requires = "service")]
    pub(super) write: Option<PathBuf>,

    /// Leave an existing FILE unchanged while no instance may be given work
    #[arg(long, requires = "write")]
    pub(super) keep_last: bool,

    /// Run a command now and after each change, with a `host:port` line for each instance on standard input
    ///
    /// All arguments that follow are the command and its arguments. DOCENT_PATH is set in its environment. A
    /// change that occurs while the command runs is handled when it has ended. docent continues if the
    /// command fails, but ends with 126 or 127 if the command cannot be run. With --write, the command runs
    /// once FILE has the first list, and after each replacement. Standard input has the form of the list with
    /// `-o file-sd`, --format or --header.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, requires = "service")]
    pub(super) exec: Vec<OsString>,
}

impl Arguments {
    /// Returns the path of a service.
    pub(super) fn path_of(&self, service: &str) -> String {
        format!("{}/{service}", self.root.trim_end_matches('/'))
    }
}

/// Layouts by their names on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Layout {
    Curator,
    Dubbo,
}

impl From<Layout> for RegistryLayout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Curator => Self::Curator,
            Layout::Dubbo => Self::Dubbo,
        }
    }
}
