use crate::output::Output;
use serde::Serialize;
use std::io;

/// An item as shown in JSON.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShownItem<'a> {
    /// Name of the item's node, if the item was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Number of deliveries, if the item was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<u32>,
    /// Item, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    /// Item in hexadecimal digits, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    item_hex: Option<String>,
}

impl<'a> ShownItem<'a> {
    pub(super) fn new(item: &'a [u8]) -> Self {
        let text = std::str::from_utf8(item).ok();
        let hex = || item.iter().map(|byte| format!("{byte:02x}")).collect();
        let item_hex = if text.is_none() { Some(hex()) } else { None };
        Self { item: text, item_hex, ..Self::default() }
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
