use super::printable;
use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// Data of a node that its writer meant as a text, byte for byte as it is stored.
///
/// `Display` is for terminals: it is [`printable`]. It is serialized as a string, which JSON escapes, and as
/// an object `{"hex": "ff00"}` where the bytes are no UTF-8.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NodeText(Bytes);

impl NodeText {
    /// The text of these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The text as it is stored, which a terminal must not be given; `None` for bytes that are no UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for NodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0))
    }
}

impl fmt::Debug for NodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for NodeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(text) = self.as_str() {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("hex", &self.hex())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_serialized_as_it_is_stored_and_other_bytes_as_hex() {
        let json = |bytes: &'static [u8]| serde_json::to_string(&NodeText::new(bytes)).unwrap();
        assert_eq!(json(b"web-1"), "\"web-1\"");
        assert_eq!(json(b"\x1b[2J"), "\"\\u001b[2J\"");
        assert_eq!(json(b"\xff\x00"), "{\"hex\":\"ff00\"}");
    }

    #[test]
    fn a_terminal_is_shown_no_control_character() {
        let text = NodeText::new(&b"\x1b[2Jweb\xff"[..]);
        assert_eq!(text.to_string(), "\\x1b[2Jweb\\xff");
        assert_eq!(format!("{text:?}"), "\"\\x1b[2Jweb\\xff\"");
        assert_eq!(text.as_str(), None);
    }
}
