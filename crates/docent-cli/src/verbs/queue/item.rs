use crate::output::Output;
use bytes::Bytes;
use docent::inspect::NodeText;
use serde::Serialize;
use std::io;

/// An item as shown in JSON.
#[derive(Debug, Serialize)]
pub(super) struct ShownItem<'a> {
    /// Path of the queue.
    path: &'a str,
    /// Name of the item's node; `None` if the item was not taken.
    name: Option<&'a str>,
    /// Number of deliveries, if counted.
    deliveries: Option<u32>,
    value: NodeText,
}

impl<'a> ShownItem<'a> {
    pub(super) fn new(path: &'a str, item: &Bytes) -> Self {
        Self { path, name: None, deliveries: None, value: NodeText::new(item.clone()) }
    }

    /// Returns the same item with the name of its node and its number of deliveries.
    pub(super) fn named(self, name: &'a str, deliveries: Option<u32>) -> Self {
        Self { name: Some(name), deliveries, ..self }
    }
}

/// Prints an item on one line: as JSON, escaped on a terminal, otherwise unchanged.
pub(super) fn print(output: &Output, item: &[u8], shown: &ShownItem<'_>) -> io::Result<()> {
    if output.is_json() {
        return output.json(shown);
    }
    if output.is_terminal() {
        return output.line(String::from_utf8_lossy(item));
    }
    output.bytes(&[item, b"\n"].concat())
}
