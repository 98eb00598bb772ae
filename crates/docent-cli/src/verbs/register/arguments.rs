use crate::args::duration;
use clap::Args;
use std::ffi::OsString;
use std::time::Duration;

/// Announce an instance of a service while CMD lives; without CMD until a signal.
///
/// Without CMD the path of its node and its id are printed once it is announced. On SIGTERM and SIGINT the
/// instance is disabled first, so that nobody gives it work any more; after --drain, or when a second one
/// comes, CMD gets the signal, and the instance is deregistered when CMD has ended. Where CMD lives on for
/// 5 s, the instance is enabled again, or the check decides. All other signals are passed on as they are:
/// SIGHUP tells many services to read their settings again. Without CMD each of them ends the registration.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Name of the service
    pub(super) service: String,

    /// Host name or IP address at which others reach it
    #[arg(long)]
    pub(super) address: String,

    /// Port at which others reach it
    #[arg(long)]
    pub(super) port: u16,

    /// Port for TLS, which those that call it by host and port use in the place of --port
    #[arg(long, value_name = "PORT")]
    pub(super) ssl_port: Option<u16>,

    /// Id of the instance, which takes its own place when it is started again [default: a random one]
    #[arg(long)]
    pub(super) id: Option<String>,

    /// Folder of the services
    #[arg(long, value_name = "PATH", default_value = "/services")]
    pub(super) root: String,

    /// A member of the payload, as zone=a; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = member)]
    pub(super) meta: Vec<(String, String)>,

    /// Share of the work among others
    #[arg(long)]
    pub(super) weight: Option<u32>,

    /// Payload as JSON, or @FILE to read it from a file
    #[arg(long, value_name = "JSON", conflicts_with = "meta")]
    pub(super) payload: Option<String>,

    /// Command that tells by exit code 0 whether the instance may be given work; split at spaces, no shell
    #[arg(long, value_name = "CMD", value_parser = program)]
    pub(super) check: Option<String>,

    /// Time from one check to the next, and the longest one that a check may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, requires = "check")]
    pub(super) every: Duration,

    /// Time for which the instance stands disabled before CMD gets the signal that asks for the end
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    pub(super) drain: Duration,

    /// Command to run, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
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
        true => Err("must be longer than nothing".to_owned()),
    })
}

fn member(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be a name and a value, as in zone=a".to_owned()),
    }
}
