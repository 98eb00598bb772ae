use std::borrow::Cow;
use std::fmt::Write;

/// Returns `text` as one line that is safe to show on a terminal. Control characters, invisible characters
/// and those that change the text direction are written as `\n` or `\u{1b}`.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match is_unsafe(char) {
            // Writing to a string cannot fail.
            true => drop(write!(safe, "{}", char.escape_default())),
            false => safe.push(char),
        }
    }
    Cow::Owned(safe)
}

/// Replaces the same characters in `json` by JSON escapes. In JSON they occur only inside strings.
pub(crate) fn json_escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for char in json.chars() {
        match is_unsafe(char) {
            true => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(safe, "\\u{unit:04x}");
                }
            }
            false => safe.push(char),
        }
    }
    safe
}

/// Returns true for control characters and line ends, direction marks and other characters without width:
/// names that differ only in these look the same.
pub(super) fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_that_steer_a_terminal_are_shown_and_not_sent() {
        assert_eq!(escaped("a\u{1b}[2Jb\r\n\u{9b}c"), "a\\u{1b}[2Jb\\r\\n\\u{9b}c");
        assert_eq!(escaped("a\u{202e}b\u{61c}"), "a\\u{202e}b\\u{61c}");
    }

    #[test]
    fn names_that_render_alike_are_distinguished() {
        assert_eq!(escaped("a\u{200b}b\u{feff}\u{ad}"), "a\\u{200b}b\\u{feff}\\u{ad}");
    }

    #[test]
    fn escaped_json_decodes_to_the_same_text() {
        let text = "a\u{1b}\u{7f}\u{9b}\u{202e}\n\"ü\u{e0041}";
        let safe = json_escaped(&serde_json::to_string(text).unwrap());
        assert_eq!(safe, r#""a\u001b\u007f\u009b\u202e\n\"ü\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn other_text_is_unchanged() {
        assert_eq!(escaped("Grüße, 世界 👋"), "Grüße, 世界 👋");
    }
}
