use super::options::{HELP, Options, Order, parse};
use super::signals::Signals;
use crate::files::most_files;
use crate::{Limits, Server, StartError};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Exit code of a command line that cannot be followed.
const USAGE: u8 = 2;

/// Added to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// Runs the server as a program, on a runtime of its own, until a signal ends it. `name` is how users call
/// it, and `args` are the arguments behind that; `--help` lists them.
///
/// It takes over SIGTERM and SIGINT, prints a line when it serves and another one when it has stopped, and
/// logs to standard error where no other subscriber of `tracing` is set. Of each process it is meant to be
/// called once, as the last thing that its `main` does:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     docent_server::cli::run("docent-server", std::env::args_os().skip(1))
/// }
/// ```
pub fn run(name: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let code = match parse(args) {
        Ok(Order::Help) => say(HELP.replace("{name}", name).trim_end()),
        Ok(Order::Version) => say(format!("{name} {}", env!("CARGO_PKG_VERSION"))),
        Ok(Order::Serve(options)) => serve(name, *options).unwrap_or_else(|error| fail(name, error, 1)),
        Err(error) => fail(name, format!("{error}; --help lists the options"), USAGE),
    };
    ExitCode::from(code)
}

fn serve(name: &str, options: Options) -> io::Result<u8> {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // Somebody else's subscriber is as good.
    let _ = log.try_init();
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(until_signalled(name, options));
    // The second signal does not wait for a file that is being written.
    runtime.shutdown_background();
    code
}

/// The first signal stops the server, the second one does not wait for that.
async fn until_signalled(name: &str, options: Options) -> io::Result<u8> {
    let (mut signals, stop) = (Signals::take()?, CancellationToken::new());
    let signalled = async {
        signals.next().await;
        stop.cancel();
        SIGNALLED + signals.next().await
    };
    tokio::select! {
        biased;
        code = live(name, options, &stop) => Ok(code),
        code = signalled => Ok(fail(name, "stopped at once, without a clean stop", code)),
    }
}

/// The life of a server up to its exit code.
async fn live(name: &str, Options { builder, keep }: Options, stop: &CancellationToken) -> u8 {
    let server = match builder.start().await {
        Ok(server) => server,
        Err(error) => return fail(name, explained(&error), 1),
    };
    say(greeting(name, &server, keep.as_ref()));
    if let Some(warning) = few_files(most_files(), Limits::default().connections) {
        tracing::warn!("{warning}");
    }
    stop.cancelled().await;
    let (nodes, sessions) = (server.node_count(), server.session_count());
    match (server.try_stop().await, keep) {
        (Err(error), _) => fail(name, error, 1),
        (Ok(()), Some(file)) => {
            say(format!("{name} stopped: {nodes} nodes and {sessions} sessions are kept in {file:?}"))
        }
        (Ok(()), None) => say(format!("{name} stopped: {nodes} nodes and {sessions} sessions are gone")),
    }
}

fn greeting(name: &str, server: &Server, keep: Option<&PathBuf>) -> String {
    let (version, address) = (env!("CARGO_PKG_VERSION"), server.connect_string());
    let store = match keep {
        Some(file) => format!("in memory, kept in {file:?} at a clean stop (not durable)"),
        None => "in memory".to_owned(),
    };
    format!("{name} {version}: embedded server for ZooKeeper clients on {address}, {store}")
}

/// Warning of a process that may open fewer files than there may be links; negative where it is not known.
fn few_files(files: i64, links: usize) -> Option<String> {
    let is_few = usize::try_from(files).is_ok_and(|files| files < links);
    is_few.then(|| {
        format!("at most {files} open files, and so fewer than {links} links; ulimit -n permits more")
    })
}

/// The error, with what the user can do about it.
fn explained(error: &StartError) -> String {
    match error {
        StartError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            format!("{error}; --port 0 takes any free port")
        }
        StartError::Keep(_) => format!("{error}; the file was left as it is"),
        _ => error.to_string(),
    }
}

/// Prints a line, and returns the exit code of success.
fn say(line: impl Display) -> u8 {
    // Nobody has to listen.
    let _ = writeln!(io::stdout(), "{line}");
    0
}

/// Tells of a failure, and returns its exit code.
fn fail(name: &str, error: impl Display, code: u8) -> u8 {
    let _ = writeln!(io::stderr(), "{name}: {error}");
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_may_open_too_few_files_is_told() {
        let warning = few_files(1_024, 10_000).expect("they are too few");
        assert!(warning.contains("1024") && warning.contains("10000"), "{warning}");
        assert_eq!([-1, 10_000, i64::MAX].map(|files| few_files(files, 10_000)), [None, None, None]);
    }
}
