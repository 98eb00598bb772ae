use std::borrow::Cow;
use std::fmt::Write;

/// `text` in one line that a terminal shows as it is: control characters, and those that change the
/// direction of a text or are not seen, are written as `\n` or `\u{1b}`.
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

/// `json` with the same characters as JSON escapes. All of them stand in strings there.
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

/// True for text that stands in one line, and is one word of it.
pub(crate) fn is_one_word(text: &str) -> bool {
    !text.chars().any(|char| is_unsafe(char) || char.is_whitespace())
}

/// True for control characters and line ends, for marks of direction, and for others without a width: names
/// that differ by those alone look the same.
fn is_unsafe(char: char) -> bool {
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
    fn names_that_look_the_same_are_told_apart() {
        assert_eq!(escaped("a\u{200b}b\u{feff}\u{ad}"), "a\\u{200b}b\\u{feff}\\u{ad}");
    }

    #[test]
    fn json_says_the_same_without_them() {
        let text = "a\u{1b}\u{7f}\u{9b}\u{202e}\n\"ü\u{e0041}";
        let safe = json_escaped(&serde_json::to_string(text).unwrap());
        assert_eq!(safe, r#""a\u001b\u007f\u009b\u202e\n\"ü\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn other_text_stays_as_it_is() {
        assert_eq!(escaped("Grüße, 世界 👋"), "Grüße, 世界 👋");
    }
}
