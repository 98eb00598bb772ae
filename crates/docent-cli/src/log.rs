//! The log of the library, on standard error, for `-v`.

use crate::args::Global;
use tracing_subscriber::filter::LevelFilter;

/// Starts the log, if there is to be one.
pub(crate) fn start(global: &Global) {
    let level = match global.verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false).init();
}
