use crate::output::Output;
use docent::Fence;
use serde::Serialize;
use std::io;

/// Lock or leadership that is held, as it is printed: path and fence.
#[derive(Debug, Serialize)]
pub(crate) struct HeldLine<'a> {
    /// Path of the lock.
    pub(crate) path: &'a str,
    /// Fence of an exclusive holder.
    pub(crate) fence: Option<Fence>,
}

/// Text for a holder that somebody asked to leave.
pub(crate) fn asked_to_leave(path: &str) -> String {
    format!("the holder of {path:?} was asked to leave")
}

impl HeldLine<'_> {
    /// Prints it as one line, with `-` in place of a fence that there is none of.
    pub(crate) fn print(&self, output: &Output) -> io::Result<()> {
        if output.is_json() {
            return output.json(self);
        }
        let fence = self.fence.map_or_else(|| "-".to_owned(), |fence| fence.to_string());
        output.line(format!("{} {fence}", self.path))
    }
}
