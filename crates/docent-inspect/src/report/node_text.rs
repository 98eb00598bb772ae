use super::printable;
use bytes::Bytes;
use docent_core::ClientIdentity;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// Data of a node that its writer meant as text, stored unchanged.
///
/// `Display` is safe for terminals: it is [`printable`]. Serialized as a string, which JSON escapes, or as an
/// object `{"hex": "ff00"}` if the bytes are not UTF-8.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NodeText(Bytes);

impl NodeText {
    /// Creates a text from these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the stored text, which must not be printed to a terminal. Returns `None` if the bytes are not
    /// UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns host, process and label, if they can be parsed.
    pub(crate) fn client(&self) -> Option<ClientIdentity> {
        ClientIdentity::parse(self.as_str()?)
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
