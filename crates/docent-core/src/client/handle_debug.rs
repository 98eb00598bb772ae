use super::Client;
use std::fmt::{DebugStruct, Formatter};

/// Begins the debug output of a recipe's handle: its path, and its client in one line, without any data.
pub fn debug_handle<'a, 'b>(
    f: &'a mut Formatter<'b>,
    name: &str,
    path: &str,
    client: &Client,
) -> DebugStruct<'a, 'b> {
    let mut printed = f.debug_struct(name);
    printed.field("path", &path).field("client", client);
    printed
}
