use bytes::Bytes;
use docent::config::{Revision, Snapshot};
use serde::Serialize;
use std::time::SystemTime;

/// A value as shown in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
    path: &'a str,
    #[serde(flatten)]
    revision: Option<ShownRevision>,
    /// Value, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    /// Value in hexadecimal digits, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

/// A revision as shown in JSON.
#[derive(Debug, Serialize)]
pub(super) struct ShownRevision {
    version: i32,
    zxid: i64,
    modified_ms: u64,
}

impl<'a> Shown<'a> {
    pub(super) fn new(path: &'a str, value: &'a [u8], revision: Option<Revision>) -> Self {
        let text = std::str::from_utf8(value).ok();
        let hex = || value.iter().map(|byte| format!("{byte:02x}")).collect();
        let value_hex = if text.is_none() { Some(hex()) } else { None };
        Self { path, revision: revision.map(ShownRevision::new), value: text, value_hex }
    }

    pub(super) fn of(path: &'a str, snapshot: &'a Snapshot<Bytes>) -> Self {
        Self::new(path, snapshot.value(), snapshot.revision())
    }
}

impl ShownRevision {
    pub(super) fn new(revision: Revision) -> Self {
        let since = revision.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let modified_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { version: revision.version, zxid: revision.mzxid, modified_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::Shown;

    #[test]
    fn bytes_that_are_no_text_are_shown_as_digits() {
        let json = |value: &[u8]| serde_json::to_string(&Shown::new("/a", value, None)).unwrap();
        assert_eq!(json(b"x\n"), r#"{"path":"/a","value":"x\n"}"#);
        assert_eq!(json(&[0xff, 0]), r#"{"path":"/a","value_hex":"ff00"}"#);
    }
}
