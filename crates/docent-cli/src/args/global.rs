use super::duration;
use clap::{ArgAction, Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Options that every verb accepts.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Servers and chroot, such as `zk1:2181,zk2:2181/shop` [env: DOCENT_CONNECT]
    ///
    /// Other variables set the options below: DOCENT_SESSION_TIMEOUT, DOCENT_OPERATION_TIMEOUT,
    /// DOCENT_CREDENTIALS_FILE, DOCENT_SASL_CREDENTIALS_FILE, DOCENT_SASL_GSSAPI, DOCENT_TLS_CA_FILE and
    /// those listed in the library's guide. An option overrides a variable, and a variable overrides the
    /// current context of the file of contexts. With --context, variables are ignored, so that none of them
    /// redirects a command.
    #[arg(long, global = true, value_name = "SERVERS")]
    pub(crate) connect: Option<String>,

    /// Take servers and settings from this context in the file of contexts
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "connect")]
    pub(crate) context: Option<String>,

    /// File of contexts [env: DOCENT_CONTEXTS] [default: ~/.config/docent/contexts.toml]
    ///
    /// The file has a table `[contexts.NAME]` for each context, with `connect` and the library's other
    /// settings, and `current = "NAME"` for the context to use when no servers are given.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) contexts_file: Option<PathBuf>,

    /// Session timeout to request: the servers free what the session holds if they receive nothing from it
    /// for this long
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub(crate) session_timeout: Option<Duration>,

    /// Tick of the servers, from which the lease of locks is calculated [default: 2s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub(crate) server_tick: Option<Duration>,

    /// Time limit for connecting and for each operation; does not limit waiting for a lock [default: 15s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// File with `user:password` on its first line
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,

    /// File with `user:password` on its first line, for SASL with DIGEST-MD5
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) sasl_file: Option<PathBuf>,

    /// Prove the identity with a Kerberos ticket: SASL with GSSAPI
    ///
    /// The ticket comes from the credential cache or, with KRB5_CLIENT_KTNAME, from a client keytab. Needs a
    /// build with `RUSTFLAGS="--cfg docent_gssapi"`.
    #[arg(long, global = true, conflicts_with = "sasl_file")]
    pub(crate) sasl_gssapi: bool,

    /// First part of the servers' Kerberos principals [default: zookeeper]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) sasl_service: Option<String>,

    /// Kerberos principal of all servers [default: the service and the host in --connect]
    #[arg(long, global = true, value_name = "PRINCIPAL")]
    pub(crate) sasl_server_principal: Option<String>,

    /// Send the password of --auth-file even without TLS, where others on the network may read it
    #[arg(long, global = true)]
    pub(crate) allow_plaintext_auth: bool,

    /// Write nothing, and also read from a server that has lost its quorum
    ///
    /// Data from such a server may be out of date; a remark on standard error reports that. Verbs that write
    /// fail. Ages are lower bounds, because reading the servers' clock needs a write.
    #[arg(long, global = true)]
    pub(crate) read_only: bool,

    /// PEM file of trusted certificate authorities; enables TLS
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,

    /// PEM file of this client's certificate and its chain
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// PEM file of the key of this client's certificate
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Name that the servers' certificates must be valid for [default: the host in --connect]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,

    /// Output format; `hostport` and `file-sd` work with `discover` only
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub(crate) output: Format,

    /// Log what the library does to standard error; repeat up to three times for more detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print only errors to standard error, no progress or remarks
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// Output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    #[default]
    Table,
    /// Columns for people, with more of them
    Wide,
    /// JSON, one object per line
    Json,
    /// YAML, one document per object, with the same fields
    Yaml,
    /// `host:port` lines
    Hostport,
    /// Targets for Prometheus' `file_sd_configs`
    FileSd,
}

impl Format {
    /// Returns the name of a format that only `discover` has.
    pub(crate) fn of_discover_only(self) -> Option<&'static str> {
        match self {
            Self::Table | Self::Wide | Self::Json | Self::Yaml => None,
            Self::Hostport => Some("hostport"),
            Self::FileSd => Some("file-sd"),
        }
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
