use super::console::Console;
use super::options::{Options, Order, help, parse};
use super::signals::Signals;
use crate::files::most_files;
use crate::log::Entry;
use crate::{KeepFault, Server, StartError};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime;
use tokio_util::sync::CancellationToken;

/// Exit code for an invalid command line.
const USAGE: u8 = 2;

/// Base of the exit code after a second signal, to which the signal's number is added.
const SIGNALLED: u8 = 128;

/// Runs the server as a program on its own runtime, until a signal stops it. `name` is the name by which
/// users call the program, and `args` are the arguments that follow the name. `--help` lists the options.
///
/// The function handles SIGTERM, SIGINT and SIGHUP. A SIGHUP that is ignored when the process starts stays
/// ignored. The function prints one line when the server is ready and another when the server has stopped.
/// Logs go to standard error unless another `tracing` subscriber is set, and panics are always reported
/// there. A standard stream that is closed, full or not read does not delay the server. Call this function
/// once per process, as the last statement of `main`:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     docent_server::cli::run("docent-server", std::env::args_os().skip(1))
/// }
/// ```
pub fn run(name: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let console = Console::new(name);
    let code = match parse(args) {
        Ok(Order::Help) => console.print(help(name).trim_end()),
        Ok(Order::Version) => console.print(format!("{name} {}", env!("CARGO_PKG_VERSION"))),
        Ok(Order::Serve(options)) => {
            serve(name, *options, &console).unwrap_or_else(|error| console.fail(error, 1))
        }
        Err(error) => console.fail(format!("{error}; --help lists the options"), USAGE),
    };
    console.flush();
    ExitCode::from(code)
}

fn serve(name: &str, options: Options, console: &Console) -> io::Result<u8> {
    console.start_log();
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(until_signalled(name, options, console));
    // After a second signal, the process does not wait for a file that is still being written.
    runtime.shutdown_background();
    code
}

/// The first signal stops the server. A second signal ends the program without waiting for that stop.
async fn until_signalled(name: &str, options: Options, console: &Console) -> io::Result<u8> {
    let (mut signals, stop) = (Signals::take()?, CancellationToken::new());
    let signalled = async {
        signals.next().await;
        stop.cancel();
        SIGNALLED + signals.next().await
    };
    tokio::select! {
        biased;
        code = live(name, options, console, &stop) => Ok(code),
        code = signalled => Ok(console.fail("stopped immediately by a second signal, without a clean stop", code)),
    }
}

/// Runs the server until it has stopped, and returns the exit code.
async fn live(
    name: &str,
    Options { builder, keep, connections }: Options,
    console: &Console,
    stop: &CancellationToken,
) -> u8 {
    let server = match builder.start().await {
        Ok(server) => server,
        Err(error) => return console.fail(explained(&error), 1),
    };
    console.print(greeting(name, &server, keep.as_ref()));
    if let Some(warning) = few_files(most_files(), connections) {
        warning.write();
    }
    stop.cancelled().await;
    let (nodes, sessions) = (server.node_count(), server.session_count());
    let stopped = format!("{name} stopped: {nodes} nodes and {sessions} sessions");
    match (server.try_stop().await, keep) {
        (Err(error), _) => console.fail(error, 1),
        (Ok(()), Some(file)) => console.print(format!("{stopped} saved in {file:?}")),
        (Ok(()), None) => console.print(format!("{stopped} discarded")),
    }
}

fn greeting(name: &str, server: &Server, keep: Option<&PathBuf>) -> String {
    let (version, address) = (env!("CARGO_PKG_VERSION"), server.connect_string());
    let store = match keep {
        Some(file) => format!("in memory, saved in {file:?} at a clean stop (not durable)"),
        None => "in memory".to_owned(),
    };
    format!("{name} {version}: embedded server for ZooKeeper clients on {address}, {store}")
}

/// Returns a warning if the process may open fewer files than the server may have links. `files` is negative
/// if the limit is unknown.
fn few_files(files: i64, links: usize) -> Option<Entry> {
    let is_few = usize::try_from(files).is_ok_and(|files| files < links);
    is_few.then_some(Entry::FewFiles { files, links })
}

/// Returns the text of an error, with what the user can do about it.
fn explained(error: &StartError) -> String {
    match error {
        StartError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            format!("{error}; --port 0 selects a free port")
        }
        StartError::Keep(keep) if matches!(keep.fault(), KeepFault::InUse) => {
            format!("{error}; each server needs its own file")
        }
        StartError::Keep(_) => format!("{error}; the file was not changed"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_too_few_open_files_is_reported() {
        assert!(few_files(1_024, 10_000).is_some());
        assert!([-1, 10_000, i64::MAX].into_iter().all(|files| few_files(files, 10_000).is_none()));
    }
}
