//! Text as the real server reads it.

use std::str;

/// Decodes bytes as UTF-8 like Java does: each invalid sequence becomes one U+FFFD. Java recognizes an
/// encoded surrogate as one invalid sequence, whereas Rust's standard library counts three.
///
/// ```
/// assert_eq!(docent_proto::text_of(b"a\xff\xed\xa0\x80z"), "a\u{fffd}\u{fffd}z");
/// ```
pub fn text_of(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut text = String::new();
    loop {
        match str::from_utf8(rest) {
            Ok(valid) if text.is_empty() => return valid.to_owned(),
            Ok(valid) => return text + valid,
            Err(error) => {
                let (valid, bad) = rest.split_at(error.valid_up_to());
                text.push_str(str::from_utf8(valid).unwrap_or_default());
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &bad[surrogate(bad).or(error.error_len()).unwrap_or(bad.len())..];
            }
        }
    }
}

/// Returns the length of the surrogate, or of a part of one, at the front of `bytes`.
fn surrogate(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => Some(3),
        [0xed, 0xa0..=0xbf, ..] => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_text_is_replaced_as_in_java() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            ("ä\u{1f600}".as_bytes(), "ä\u{1f600}"),
            (b"\xff", "\u{fffd}"),
            (b"\xc3", "\u{fffd}"),
            (b"\xc3a", "\u{fffd}a"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe0\x80", "\u{fffd}\u{fffd}"),
            (b"\xed\xa0\xbd\xed\xb8\x80", "\u{fffd}\u{fffd}"),
            (b"\xed\xa0a", "\u{fffd}a"),
            (b"\xed\xa0", "\u{fffd}"),
            (b"\xf0\x9f\x98a", "\u{fffd}a"),
            (b"\xf5\x80", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(text_of(bytes), text, "{bytes:?}");
        }
    }
}
