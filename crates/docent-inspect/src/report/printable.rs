use std::fmt::Write;

/// Returns terminal-safe text for bytes from any source: names of nodes, data, labels.
///
/// Letters, digits and signs of all scripts stay. Control characters, bytes that are not UTF-8 and
/// backslashes become `\xNN`, `\n`, `\t`, `\r` or `\\`. Invisible characters, and those that change the text
/// direction or are for private use, become `\u{NNNN}`. So the printed text cannot move the cursor, clear the
/// screen or hide anything, and different inputs look different.
pub fn printable(bytes: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for chunk in bytes.as_ref().utf8_chunks() {
        chunk.valid().chars().for_each(|char| push(&mut out, char));
        for byte in chunk.invalid() {
            escaped(&mut out, format_args!("\\x{byte:02x}"));
        }
    }
    out
}

fn push(out: &mut String, char: char) {
    match char {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        char if char.is_ascii_control() => escaped(out, format_args!("\\x{:02x}", u32::from(char))),
        char if is_invisible(char) => escaped(out, format_args!("\\u{{{:x}}}", u32::from(char))),
        char => out.push(char),
    }
}

fn escaped(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string accepts all text");
}

/// Returns true for characters that are not visible as themselves: C1 controls, spaces other than the plain
/// one, marks of direction and width, tags, private use and noncharacters.
fn is_invisible(char: char) -> bool {
    const RANGES: [(u32, u32); 14] = [
        (0x80, 0xa0),
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x180b, 0x180f),
        (0x2000, 0x200f),
        (0x2028, 0x202f),
        (0x205f, 0x206f),
        (0x3164, 0x3164),
        (0xe000, 0xf8ff),
        (0xfe00, 0xfe0f),
        (0xfff0, 0xffff),
        (0xe0000, 0x0010_ffff),
    ];
    let code = u32::from(char);
    code == 0xfeff || RANGES.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_scripts_are_unchanged() {
        for text in ["web-1 (pid 12, nächtlich)", "注文", "🦀 ok", "\"quoted\" 'text'"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        for (bytes, shown) in [
            (&b"\x1b]0;owned\x07"[..], "\\x1b]0;owned\\x07"),
            (b"a\r\nb\tc", "a\\r\\nb\\tc"),
            (b"\x7f\x00", "\\x7f\\x00"),
            (b"\xff\xfe", "\\xff\\xfe"),
            (b"a\\x1b", "a\\\\x1b"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            ("\u{202e}gpj.exe".as_bytes(), "\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{feff}".as_bytes(), "a\\u{200b}b\\u{feff}"),
            ("\u{e0041}".as_bytes(), "\\u{e0041}"),
        ] {
            assert_eq!(printable(bytes), shown);
        }
    }

    #[test]
    fn escaped_texts_have_no_control_characters_and_stay_distinct() {
        let mut seen = std::collections::HashMap::new();
        for first in 0..=u8::MAX {
            for second in [0x00, 0x1b, 0x5c, 0x78, 0x80, 0x9b, 0xc2, 0xff] {
                let shown = printable([first, second]);
                assert!(!shown.chars().any(char::is_control), "{shown:?}");
                assert_eq!(seen.insert(shown, [first, second]), None);
            }
        }
    }
}
