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

/// Exit code of a command line that cannot be followed.
const USAGE: u8 = 2;

/// Added to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// Runs the server as a program, on a runtime of its own, until a signal ends it. `name` is how users call
/// it, and `args` are the arguments behind that; `--help` lists them.
///
/// It takes over SIGTERM, SIGINT and SIGHUP, but a SIGHUP that is ignored at the start stays ignored. It
/// prints a line when it serves and another one when it has stopped, logs to standard error unless another
/// subscriber of `tracing` is set, and reports panics there. A standard stream that is closed, full or not
/// read does not delay it. A process should call it once, as the last statement of its `main`:
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
        Ok(Order::Help) => console.say(help(name).trim_end()),
        Ok(Order::Version) => console.say(format!("{name} {}", env!("CARGO_PKG_VERSION"))),
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
    // The second signal does not wait for a file that is being written.
    runtime.shutdown_background();
    code
}

/// The first signal stops the server, the second one does not wait for that.
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
        code = signalled => Ok(console.fail("stopped at once, without a clean stop", code)),
    }
}

/// The life of a server up to its exit code.
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
    console.say(greeting(name, &server, keep.as_ref()));
    if let Some(warning) = few_files(most_files(), connections) {
        warning.write();
    }
    stop.cancelled().await;
    let (nodes, sessions) = (server.node_count(), server.session_count());
    let stopped = format!("{name} stopped: {nodes} nodes and {sessions} sessions are");
    match (server.try_stop().await, keep) {
        (Err(error), _) => console.fail(error, 1),
        (Ok(()), Some(file)) => console.say(format!("{stopped} kept in {file:?}")),
        (Ok(()), None) => console.say(format!("{stopped} gone")),
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

/// Warning of a process that may open fewer files than there may be links; negative if that is not known.
fn few_files(files: i64, links: usize) -> Option<Entry> {
    let is_few = usize::try_from(files).is_ok_and(|files| files < links);
    is_few.then_some(Entry::FewFiles { files, links })
}

/// The error, with what the user can do about it.
fn explained(error: &StartError) -> String {
    match error {
        StartError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            format!("{error}; --port 0 takes any free port")
        }
        StartError::Keep(keep) if matches!(keep.fault(), KeepFault::InUse) => {
            format!("{error}; each server needs its own file")
        }
        StartError::Keep(_) => format!("{error}; the file was left as it is"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_may_open_too_few_files_is_told() {
        assert!(few_files(1_024, 10_000).is_some());
        assert!([-1, 10_000, i64::MAX].into_iter().all(|files| few_files(files, 10_000).is_none()));
    }
}
