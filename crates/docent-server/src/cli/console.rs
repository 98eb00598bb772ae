use super::lossy_writer::LossyWriter;
use std::env;
use std::fmt::Display;
use std::panic;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Variable that sets what is logged.
const VARIABLE: &str = "RUST_LOG";

/// Maximum wait at the end for a reader of the standard streams.
const FLUSH: Duration = Duration::from_secs(1);

/// The standard streams of the program. Nothing that is written to them fails or waits.
#[derive(Debug, Clone)]
pub(super) struct Console {
    name: String,
    stdout: LossyWriter,
    stderr: LossyWriter,
}

impl Console {
    /// The console of a program that users call `name`.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), stdout: LossyWriter::stdout(name), stderr: LossyWriter::stderr(name) }
    }

    /// Prints a line, and returns the exit code of success.
    pub(super) fn say(&self, line: impl Display) -> u8 {
        self.stdout.last_line(format!("{line}\n").into_bytes());
        0
    }

    /// Reports a failure, and returns its exit code.
    pub(super) fn fail(&self, error: impl Display, code: u8) -> u8 {
        self.stderr.last_line(format!("{}: {error}\n", self.name).into_bytes());
        code
    }

    /// Logs to standard error, unless the process logs elsewhere already. Reports panics there as well.
    pub(super) fn start_log(&self) {
        let default = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into());
        let directives = env::var(VARIABLE).unwrap_or_default();
        let filter = default.parse(&directives).unwrap_or_else(|error| {
            self.fail(format!("{VARIABLE} {directives:?} is not valid: {error}; logging warnings"), 0);
            EnvFilter::new(LevelFilter::WARN.to_string())
        });
        let stderr = self.stderr.clone();
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || stderr.clone());
        // A subscriber that reports its own errors panics if it cannot.
        let _ = log.log_internal_errors(false).try_init();
        let stderr = self.stderr.clone();
        panic::set_hook(Box::new(move |panic| stderr.line(format!("{panic}\n").into_bytes())));
    }

    /// Gives readers of the standard streams a moment for the last lines.
    pub(super) fn flush(&self) {
        self.stdout.written_within(FLUSH);
        self.stderr.written_within(FLUSH);
    }
}
