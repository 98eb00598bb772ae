use super::printable;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// Maximum size of a payload that is kept completely, in bytes.
const MAX_KEPT: usize = 4_096;

/// Payload of an instance: JSON defined by its service.
///
/// `Display` is safe for terminals: it is [`printable`]. Serialized as an object with the fields below;
/// either `json` or `text` is `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Payload {
    /// Length of the payload in bytes.
    pub bytes: usize,
    /// The payload as JSON; `None` if it has more than 4,096 bytes or more than 127 levels.
    pub json: Option<Value>,
    /// The first 4,096 bytes of the JSON text at most, if `json` is `None`.
    pub text: Option<String>,
}

impl Payload {
    /// Creates a payload from JSON text.
    pub(crate) fn new(text: &str) -> Self {
        let json = if text.len() <= MAX_KEPT { serde_json::from_str(text).ok() } else { None };
        let start = if json.is_none() { Some(start(text).to_owned()) } else { None };
        Self { bytes: text.len(), json, text: start }
    }
}

/// Returns the first `MAX_KEPT` bytes at most.
fn start(text: &str) -> &str {
    let end = (0..=MAX_KEPT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.json, &self.text) {
            (Some(json), _) => f.write_str(&printable(json.to_string())),
            (None, text) => write!(f, "{}...", printable(text.as_deref().unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn serialized(text: &str) -> Value {
        serde_json::to_value(Payload::new(text)).unwrap()
    }

    #[test]
    fn a_payload_is_serialized_as_the_json_that_it_is() {
        for (text, value) in
            [(r#"{ "zone": "a" }"#, json!({"zone": "a"})), ("null", Value::Null), ("7", json!(7))]
        {
            assert_eq!(serialized(text), json!({ "bytes": text.len(), "json": value, "text": null }));
        }
    }

    #[test]
    fn a_large_or_deep_payload_is_truncated_between_characters() {
        let large = format!("\"{}\"", "\u{e4}".repeat(3_000));
        let payload = Payload::new(&large);
        assert_eq!((payload.bytes, payload.json, payload.text.unwrap().len()), (6_002, None, 4_095));
        let deep = "[".repeat(1_000) + &"]".repeat(1_000);
        assert_eq!(serialized(&deep), json!({ "bytes": 2_000, "json": null, "text": deep }));
    }

    #[test]
    fn a_terminal_is_shown_no_control_character() {
        let payload = Payload::new("\"\u{9b}31m\u{202e}\"");
        assert_eq!(payload.to_string(), "\"\\u{9b}31m\\u{202e}\"");
    }
}
