use super::duration;
use clap::{ArgAction, Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Options of all verbs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Servers and chroot, as `zk1:2181,zk2:2181/shop` [env: DOCENT_CONNECT]
    ///
    /// Other variables set what the options below do: DOCENT_SESSION_TIMEOUT, DOCENT_OPERATION_TIMEOUT,
    /// DOCENT_CREDENTIALS_FILE, DOCENT_TLS_CA_FILE and those that the library's guide lists. An option comes
    /// before a variable, and a variable before the context that the file says is current. With --context
    /// variables are left aside: what is named goes where it says.
    #[arg(long, global = true, value_name = "SERVERS")]
    pub(crate) connect: Option<String>,

    /// Take servers and settings from this context of the file of contexts
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "connect")]
    pub(crate) context: Option<String>,

    /// File of contexts [env: DOCENT_CONTEXTS] [default: ~/.config/docent/contexts.toml]
    ///
    /// It has a table `[contexts.NAME]` for each context, with `connect` and the library's other settings,
    /// and `current = "NAME"` for the one that holds when no servers are given.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) contexts_file: Option<PathBuf>,

    /// Session timeout to ask for: after so long without a sign of life the servers free what is held
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub(crate) session_timeout: Option<Duration>,

    /// Tick of the servers, by which the lease of locks is counted [default: 2s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub(crate) server_tick: Option<Duration>,

    /// Time limit of connecting and of each operation; waiting for a lock is not limited by it [default: 15s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// File with `user:password` on its first line
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,

    /// Send the password of --auth-file also without TLS, where others may read it on the wire
    #[arg(long, global = true)]
    pub(crate) allow_plaintext_auth: bool,

    /// File of trusted authorities in PEM: talk to the servers over TLS
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,

    /// File of the own certificate with its chain in PEM
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// File of the key of the own certificate in PEM
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Name that the servers' certificates must be valid for [default: the host in --connect]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,

    /// Form of the output; `hostport` is of `discover` alone
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub(crate) output: Format,

    /// Log on standard error what the library does; twice and three times for more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// No progress and no remarks on standard error, errors alone
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Colours: on a terminal unless NO_COLOR is set, always or never
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// Form of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// JSON, one object on each line.
    Json,
    /// `host:port` on each line.
    Hostport,
}

/// Choice of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
