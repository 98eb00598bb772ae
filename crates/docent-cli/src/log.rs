//! Log of the library on standard error, for `-v`.

use crate::args::Global;
use crate::output::Output;
use tracing_subscriber::filter::LevelFilter;

/// Starts the log if it was requested.
pub(crate) fn start(global: &Global, output: &Output) {
    let level = match global.verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let stderr = output.stderr().clone();
    let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false);
    // By default the subscriber reports write errors by printing, which panics if standard error is closed.
    log.with_writer(move || stderr.clone()).log_internal_errors(false).init();
}
