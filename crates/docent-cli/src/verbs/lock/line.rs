use crate::output::Output;
use docent::Fence;
use serde::Serialize;
use std::io;

/// A held lock or leadership, as printed: path and fence.
#[derive(Debug, Serialize)]
pub(crate) struct HeldLine<'a> {
    /// Path of the lock.
    pub(crate) path: &'a str,
    /// Fence of an exclusive holder.
    pub(crate) fence: Option<Fence>,
}

/// Returns the message for a holder that was asked to leave.
pub(crate) fn revoked_message(path: &str) -> String {
    format!("the holder of {path:?} was asked to leave")
}

impl HeldLine<'_> {
    /// Prints one line, with `-` if there is no fence.
    pub(crate) fn print(&self, output: &Output) -> io::Result<()> {
        if output.is_json() {
            return output.json(self);
        }
        let fence = self.fence.map_or_else(|| "-".to_owned(), |fence| fence.to_string());
        output.line(format!("{} {fence}", self.path))
    }
}
