use super::lossy_writer::LossyWriter;
use std::env;
use std::fmt::Display;
use std::panic;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Environment variable that sets the log filter.
const VARIABLE: &str = "RUST_LOG";

/// Maximum time to wait, before the program exits, until its last lines are written.
const FLUSH: Duration = Duration::from_secs(1);

/// Standard output and standard error of the program. Writing to them never fails and never blocks.
#[derive(Debug, Clone)]
pub(super) struct Console {
    name: String,
    stdout: LossyWriter,
    stderr: LossyWriter,
}

impl Console {
    /// Creates the console of a program that users call `name`.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), stdout: LossyWriter::stdout(name), stderr: LossyWriter::stderr(name) }
    }

    /// Prints a line to standard output and returns the exit code for success.
    pub(super) fn print(&self, line: impl Display) -> u8 {
        self.stdout.last_line(format!("{line}\n").into_bytes());
        0
    }

    /// Reports a failure on standard error and returns `code`.
    pub(super) fn fail(&self, error: impl Display, code: u8) -> u8 {
        self.stderr.last_line(format!("{}: {error}\n", self.name).into_bytes());
        code
    }

    /// Starts logging to standard error, unless the process already has a `tracing` subscriber. Panics are
    /// reported on standard error too.
    pub(super) fn start_log(&self) {
        let default = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into());
        let directives = env::var(VARIABLE).unwrap_or_default();
        let filter = default.parse(&directives).unwrap_or_else(|error| {
            self.fail(format!("{VARIABLE} {directives:?} is not valid: {error}; logging warnings"), 0);
            EnvFilter::new(LevelFilter::WARN.to_string())
        });
        let stderr = self.stderr.clone();
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || stderr.clone());
        // By default, a subscriber prints its own errors to standard error, and panics if that fails.
        let _ = log.log_internal_errors(false).try_init();
        let stderr = self.stderr.clone();
        panic::set_hook(Box::new(move |panic| stderr.line(format!("{panic}\n").into_bytes())));
    }

    /// Waits up to [`FLUSH`] for each standard stream until its queued lines are written.
    pub(super) fn flush(&self) {
        self.stdout.written_within(FLUSH);
        self.stderr.written_within(FLUSH);
    }
}
