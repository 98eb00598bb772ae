//! Log of the library on standard error: all of it for `-v`. Otherwise only its warnings about items of
//! queues, because no exit code reports an item that is left alone or moved to the dead letters, and what
//! people did through the console.

use crate::args::Global;
use crate::output::Output;
use std::io::{self, Write};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Target of the events about queues.
const QUEUES: &str = "docent::queue";

/// Target of the events about actions and credentials of people.
const CONSOLE: &str = "docent::console";

/// Starts the log if it was requested.
pub(crate) fn start(global: &Global, output: &Output) {
    let level = match global.verbose {
        0 => return start_remarks(output),
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let stderr = output.stderr().clone();
    let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false);
    // By default the subscriber reports write errors by printing, which panics if standard error is closed.
    log.with_writer(move || stderr.clone()).log_internal_errors(false).init();
}

/// Shows the warnings about queues, and the events of the console, as remarks.
fn start_remarks(output: &Output) {
    let output = output.clone();
    let log = tracing_subscriber::fmt::layer().without_time().with_level(false).with_target(false);
    let log = log.with_ansi(false).with_writer(move || Remarks(output.clone())).log_internal_errors(false);
    let shown = Targets::new().with_target(QUEUES, LevelFilter::WARN).with_target(CONSOLE, LevelFilter::INFO);
    let log = log.with_filter(shown);
    tracing_subscriber::registry().with(log).init();
}

/// Output that shows each event, which is written at once, as a remark.
struct Remarks(Output);

impl Write for Remarks {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.remark(String::from_utf8_lossy(event).trim_end());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
