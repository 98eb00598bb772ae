use crate::CodecError;
use std::borrow::Cow;
use std::str;

/// Returns the data as text: as UTF-8 if it is UTF-8, otherwise as ISO-8859-1.
pub(super) fn text(data: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(data) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => data.iter().copied().map(char::from).collect::<String>().into(),
    }
}

/// Returns the number of the line, the key and the text of each entry, as `java.util.Properties` reads them.
pub(super) fn entries(text: &str) -> Result<Vec<(usize, String, String)>, CodecError> {
    let entries = logical_lines(text).into_iter().map(|(number, line)| {
        let fault = |rule| CodecError::new(format!("line {number}: {rule}"));
        let (key, text) = split(&line);
        Ok((number, unescape(key).map_err(fault)?, unescape(text).map_err(fault)?))
    });
    entries.collect()
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\u{c}')
}

/// Returns the lines with an entry, each with its number. A line that ends with an odd number of backslashes
/// continues in the next one.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let text = text.replace("\r\n", "\n");
    let (mut lines, mut open) = (Vec::new(), None);
    for (index, line) in text.split(['\n', '\r']).enumerate() {
        let line = line.trim_start_matches(is_space);
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let (number, mut logical) = open.take().unwrap_or((index + 1, String::new()));
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let continues = backslashes % 2 == 1;
        logical.push_str(if continues { &line[..line.len() - 1] } else { line });
        if continues {
            open = Some((number, logical));
        } else {
            lines.push((number, logical));
        }
    }
    lines.extend(open);
    lines
}

/// Splits a line at the first `=`, `:` or space that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let ends = |char: char| {
        let ends = !escaped && (is_space(char) || matches!(char, '=' | ':'));
        escaped = !escaped && char == '\\';
        ends
    };
    let (key, rest) = line.split_at(line.find(ends).unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_space);
    let text = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, text.trim_start_matches(is_space))
}

fn unescape(text: &str) -> Result<String, &'static str> {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let char = match char {
            '\\' => match chars.next() {
                Some('u') => {
                    let (digits, rest) = chars.as_str().split_at_checked(4).unwrap_or_default();
                    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                    let unit = u16::from_str_radix(digits, 16).ok().filter(|_| is_hex);
                    units.push(unit.ok_or("\\u must be followed by four hexadecimal digits")?);
                    chars = rest.chars();
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => continue,
            },
            other => other,
        };
        units.extend_from_slice(char.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).map_err(|_| "\\ud800 to \\udfff must be pairs of surrogates")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_java_reads_them() {
        // The lines are examples of the documentation of `java.util.Properties.load`, and their edges.
        for (text, wanted) in [
            ("Truth = Beauty", &[("Truth", "Beauty")][..]),
            (" Truth:Beauty", &[("Truth", "Beauty")]),
            ("Truth                    :Beauty", &[("Truth", "Beauty")]),
            ("cheeses", &[("cheeses", "")]),
            (
                "fruits   apple, banana, \\\r\n     pear, \\\n  \tmango",
                &[("fruits", "apple, banana, pear, mango")],
            ),
            ("\\:\\= = a\\ b", &[(":=", "a b")]),
            ("a==b", &[("a", "=b")]),
            ("a = = b ", &[("a", "= b ")]),
            ("# no\\\n! no\n  # no\na=1", &[("a", "1")]),
            ("a=1\\\n#2", &[("a", "1#2")]),
            ("a=1\\\\\nb=2", &[("a", "1\\"), ("b", "2")]),
            ("a=1\\\n\nb=2", &[("a", "1"), ("b", "2")]),
            ("a=1\rb=2\r\n\r\nc", &[("a", "1"), ("b", "2"), ("c", "")]),
            ("a=\\t\\n\\r\\f\\z\\b\\\"\\u00E4\\ud83d\\ude00", &[("a", "\t\n\r\u{c}zb\"\u{e4}\u{1f600}")]),
            ("=x", &[("", "x")]),
            ("a=1\\", &[("a", "1")]),
            ("a\u{a0}b=\u{2028}", &[("a\u{a0}b", "\u{2028}")]),
        ] {
            let read = entries(text).unwrap();
            let read: Vec<_> = read.iter().map(|(_, key, text)| (key.as_str(), text.as_str())).collect();
            assert_eq!(read, wanted, "{text:?}");
        }
        for text in ["a=\\u", "a=\\u12", "a=\\u+123", "a=\\u123\u{e4}", "\\ug000"] {
            assert!(entries(text).is_err(), "{text}");
        }
        let lines: Vec<_> = entries("a\\\r\nb\n\nc").unwrap().into_iter().map(|(line, ..)| line).collect();
        assert_eq!(lines, [1, 4]);
    }

    #[test]
    fn data_is_utf_8_or_else_iso_8859_1() {
        assert_eq!(text("a=\u{e4}\u{20ac}".as_bytes()), "a=\u{e4}\u{20ac}");
        assert_eq!(text(b"a=\xe4\xff"), "a=\u{e4}\u{ff}");
    }
}
