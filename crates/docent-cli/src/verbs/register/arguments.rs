use crate::args::duration;
use clap::Args;
use docent::client::ParentKind;
use docent::discovery::Neighbour;
use std::ffi::OsString;
use std::time::Duration;

/// Announce an instance of a service while CMD runs; without CMD, until a signal comes.
///
/// Without CMD, docent prints the path and the id of the instance once it is announced, and every signal ends
/// the registration. With CMD, SIGTERM and SIGINT first disable the instance, so that it gets no new work.
/// After --drain, or when a second such signal comes, CMD gets the signal, and the instance is deregistered
/// when CMD has ended. If CMD keeps running for 5 s, the instance is enabled again, or the check decides.
/// Other signals are passed on unchanged, because many services reload their settings on SIGHUP.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Name of the service
    pub(super) service: String,

    /// Host name or IP address at which clients reach the instance
    #[arg(long)]
    pub(super) address: String,

    /// Port at which clients reach the instance
    #[arg(long)]
    pub(super) port: u16,

    /// TLS port, which clients that use host and port take instead of --port
    #[arg(long, value_name = "PORT")]
    pub(super) ssl_port: Option<u16>,

    /// Id of the instance; a restarted instance with the same id replaces its predecessor [default: a random
    /// id]
    #[arg(long)]
    pub(super) id: Option<String>,

    /// Parent folder of the services
    #[arg(long, value_name = "PATH", default_value = "/services")]
    pub(super) root: String,

    /// Kind of node that missing folders are created as: persistent, or container, which the servers delete
    /// when it is empty
    #[arg(long, value_name = "KIND", default_value = "persistent", value_parser = parents)]
    pub(super) parents: ParentKind,

    /// Framework whose callers must find the instance: spring-cloud, or dubbo3, which needs
    /// `--meta interfaces=NAME,NAME`
    #[arg(long, value_name = "NAME", value_parser = neighbour)]
    pub(super) neighbour: Option<Neighbour>,

    /// A member of the payload, such as zone=a; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = member)]
    pub(super) meta: Vec<(String, String)>,

    /// Share of the work relative to other instances
    #[arg(long)]
    pub(super) weight: Option<u32>,

    /// Payload as JSON, or @FILE to read it from a file
    #[arg(long, value_name = "JSON", conflicts_with = "meta")]
    pub(super) payload: Option<String>,

    /// Health check: exit code 0 means that the instance may be given work; split at spaces, no shell
    #[arg(long, value_name = "CMD", value_parser = program)]
    pub(super) check: Option<String>,

    /// Interval between checks, and the maximum time of one check
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, requires = "check")]
    pub(super) every: Duration,

    /// Time for which the instance is disabled before CMD gets the signal that asks it to end
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    pub(super) drain: Duration,

    /// Command to run, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

fn neighbour(text: &str) -> Result<Neighbour, String> {
    text.parse().map_err(|_| "must be spring-cloud or dubbo3".to_owned())
}

fn parents(text: &str) -> Result<ParentKind, String> {
    text.parse().map_err(|_| "must be container or persistent".to_owned())
}

fn program(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        false => Ok(text.to_owned()),
        true => Err("must name a program".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| match time.is_zero() {
        false => Ok(time),
        true => Err("must be longer than 0".to_owned()),
    })
}

fn member(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be a name and a value, such as zone=a".to_owned()),
    }
}
