use std::fmt::Write;

/// Returns the lines of entries.
pub(super) fn lines(entries: &[(String, String)]) -> String {
    let mut lines = String::new();
    for (key, text) in entries {
        escape(&mut lines, key, true);
        lines.push('=');
        escape(&mut lines, text, false);
        lines.push('\n');
    }
    lines
}

/// Writes a key, or a text, of which only the first character can be mistaken for a separator.
fn escape(line: &mut String, text: &str, is_key: bool) {
    for (index, char) in text.char_indices() {
        match char {
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\u{c}' => line.push_str("\\f"),
            '\\' => line.push_str("\\\\"),
            ' ' | '=' | ':' | '#' | '!' if is_key || index == 0 => line.extend(['\\', char]),
            ' '..='~' => line.push(char),
            _ => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    write!(line, "\\u{unit:04x}").expect("a string can always be written to");
                }
            }
        }
    }
}
