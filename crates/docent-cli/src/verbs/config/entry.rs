use crate::exit::Failure;
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashSet;

/// A value to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) value: Bytes,
}

/// A line of the file. Other fields, which `config ls -o json` prints, are ignored.
#[derive(Debug, Deserialize)]
struct Line {
    path: String,
    value: LineValue,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum LineValue {
    Text(String),
    Bytes { hex: String },
}

impl Entry {
    /// Parses a file with one JSON object per line.
    ///
    /// # Errors
    /// `BadData` with the number of the first line that is not valid, or that has the path of an earlier one.
    pub(super) fn all_of(bytes: &[u8]) -> Result<Vec<Self>, Failure> {
        let mut entries = Vec::new();
        let mut paths = HashSet::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let bad = |reason: String| {
                Failure::bad_data(format!("line {}: {reason}: nothing was imported", number + 1))
            };
            let entry = Self::of(line).map_err(bad)?;
            if !paths.insert(entry.path.clone()) {
                return Err(bad(format!("{} occurs twice", entry.path)));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn of(line: &[u8]) -> Result<Self, String> {
        let rule = |error| format!("must be an object with `path` and `value`: {error}");
        let Line { path, value } = serde_json::from_slice(line).map_err(rule)?;
        if path == "/" || !path.starts_with('/') {
            return Err(format!("path {path:?} must start with '/' and be below the root"));
        }
        let value = match value {
            LineValue::Text(text) => Bytes::from(text),
            LineValue::Bytes { hex } => {
                bytes(&hex).ok_or_else(|| format!("{hex:?} must be pairs of hexadecimal digits"))?
            }
        };
        Ok(Self { path, value })
    }
}

fn bytes(hex: &str) -> Option<Bytes> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()
        }
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::FailureKind;

    #[test]
    fn lines_are_texts_or_bytes_and_other_fields_are_ignored() {
        let file = b"{\"path\":\"/a\",\"value\":\"x\\n\",\"version\":3}\n\n{\"path\":\"/b\",\"value\":{\"hex\":\"ff00\"}}\r\n";
        let entries = Entry::all_of(file).unwrap();
        let expected = [("/a", &b"x\n"[..]), ("/b", &[0xff, 0])];
        assert_eq!(entries.iter().map(|one| (&*one.path, &*one.value)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_bad_line_is_named_with_the_rule() {
        for (file, named) in [
            ("{\"path\":\"/a\",\"value\":\"1\"}\n{oops", "line 2: must be an object"),
            ("{\"path\":\"/a\"}", "line 1"),
            ("{\"path\":\"a\",\"value\":\"\"}", "must start with '/'"),
            ("{\"path\":\"/\",\"value\":\"\"}", "below the root"),
            ("{\"path\":\"/a\",\"value\":{\"hex\":\"f\"}}", "pairs of hexadecimal digits"),
            ("{\"path\":\"/a\",\"value\":{\"hex\":\"\u{e9}\"}}", "pairs of hexadecimal digits"),
            ("{\"path\":\"/a\",\"value\":7}", "line 1"),
            (
                "{\"path\":\"/a\",\"value\":\"1\"}\n{\"path\":\"/a\",\"value\":\"1\"}",
                "line 2: /a occurs twice",
            ),
        ] {
            let failure = Entry::all_of(file.as_bytes()).unwrap_err();
            assert_eq!(failure.kind(), FailureKind::BadData, "{file}");
            assert!(failure.to_string().contains(named), "{file}: {failure}");
        }
    }
}
