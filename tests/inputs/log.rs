//! Captures warnings.

use std::io;
use std::sync::{Arc, Mutex};
use tracing::subscriber::NoSubscriber;

/// Warnings of this thread, as an operator sees them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<u8>>>);

impl Warnings {
    /// Captures the warnings until the guard is dropped.
    pub(crate) fn capture() -> (Self, impl Sized) {
        let warnings = Self::default();
        // With a single subscriber in the process, tracing disables a call site that another test's thread
        // reaches first. With further subscribers, tracing asks all of them.
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let another = tracing::Dispatch::new(tracing_subscriber::registry());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_target(false)
            .with_ansi(false)
            .without_time()
            .with_writer({
                let warnings = warnings.clone();
                move || warnings.clone()
            })
            .finish();
        (warnings, (tracing::subscriber::set_default(subscriber), another))
    }

    /// Forgets the warnings so far.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Returns the lines that contain `part`, without quotes.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| line.trim().replace('"', ""));
        lines.filter(|line| line.contains(part)).collect()
    }
}

impl io::Write for Warnings {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
