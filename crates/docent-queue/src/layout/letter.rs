//! Data of a dead letter: a header as one line of JSON, then the data of the item's node.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

const VERSION: u32 = 1;
/// Maximum length of a reason's name and of its details, in bytes.
const DETAIL: usize = 500;

/// Reason for which an item became a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// The item was handed out as often as is allowed, and never acknowledged.
    TooManyDeliveries,
    /// The item could not be decoded.
    Undecodable,
    /// A consumer [rejected](crate::Delivery::reject) the item.
    Rejected,
    /// A reason that this version does not know, by its name in the letter. Empty if the letter itself cannot
    /// be read.
    Other(String),
}

impl DeadReason {
    /// Returns the name of the reason in the letter; empty if the letter itself cannot be read.
    pub fn name(&self) -> &str {
        match self {
            Self::TooManyDeliveries => "too-many-deliveries",
            Self::Undecodable => "undecodable",
            Self::Rejected => "rejected",
            Self::Other(name) => name,
        }
    }

    fn named(name: String) -> Self {
        match name.as_str() {
            "too-many-deliveries" => Self::TooManyDeliveries,
            "undecodable" => Self::Undecodable,
            "rejected" => Self::Rejected,
            _ => Self::Other(shortened(name)),
        }
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyDeliveries => f.write_str("handed out too often"),
            Self::Undecodable => f.write_str("could not be decoded"),
            Self::Rejected => f.write_str("rejected by a consumer"),
            Self::Other(name) if name.is_empty() => f.write_str("the dead letter cannot be read"),
            Self::Other(name) => write!(f, "unknown reason {name:?}"),
        }
    }
}

/// Header of a dead letter.
#[derive(Debug)]
pub struct Head {
    /// Reason for which the item became a dead letter.
    pub reason: DeadReason,
    /// Details of the reason.
    pub detail: String,
    /// Number of deliveries of the item; `None` if deliveries are not counted.
    pub deliveries: Option<u32>,
    /// Name of the item's node.
    pub item: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    version: u32,
    reason: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    deliveries: Option<u32>,
    #[serde(default)]
    item: String,
}

impl Head {
    pub(crate) fn new(reason: DeadReason, detail: &str, deliveries: Option<u32>, item: &str) -> Self {
        Self { reason, detail: shortened(detail.to_owned()), deliveries, item: item.to_owned() }
    }

    /// Returns the data of a dead letter for the data `node`.
    pub(crate) fn letter(&self, node: &Bytes) -> Result<Bytes, serde_json::Error> {
        let line = Line {
            version: VERSION,
            reason: self.reason.name().to_owned(),
            detail: self.detail.clone(),
            deliveries: self.deliveries,
            item: self.item.clone(),
        };
        let mut letter = serde_json::to_vec(&line)?;
        letter.push(b'\n');
        letter.extend_from_slice(node);
        Ok(letter.into())
    }

    /// Parses a dead letter into its header and the data of the item's node. A letter that cannot be parsed
    /// is returned as well, with all its bytes as the data.
    pub fn read(letter: &Bytes) -> (Self, Bytes) {
        let unread = |detail: String| {
            let reason = DeadReason::Other(String::new());
            (Self { reason, detail, deliveries: None, item: String::new() }, letter.clone())
        };
        let Some(end) = letter.iter().position(|byte| *byte == b'\n') else {
            return unread("the dead letter has no header".to_owned());
        };
        match serde_json::from_slice::<Line>(&letter[..end]) {
            Ok(Line { reason, detail, deliveries, item, .. }) => {
                // Any program may have written the letter.
                let (detail, item) = (shortened(detail), shortened(item));
                let head = Self { reason: DeadReason::named(reason), detail, deliveries, item };
                (head, letter.slice(end + 1..))
            }
            Err(_) => unread("the header of the dead letter is invalid".to_owned()),
        }
    }
}

/// Truncates a text to at most [`DETAIL`] bytes.
fn shortened(mut text: String) -> String {
    if let Some(end) = (0..=DETAIL).rev().find(|end| text.is_char_boundary(*end)) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("a".to_owned()), "a");
        assert_eq!(shortened("a".repeat(DETAIL + 9)).len(), DETAIL);
        assert_eq!(shortened(format!("b{}", "ä".repeat(DETAIL))).len(), DETAIL - 1);
    }

    #[test]
    fn a_letter_is_read_as_it_was_written() {
        let node = Bytes::from_static(b"a\nb");
        let head = Head::new(DeadReason::Rejected, "no", Some(3), "item-0000000001");
        let (read, data) = Head::read(&head.letter(&node).unwrap());
        assert_eq!(
            (read.reason, read.detail.as_str(), read.deliveries),
            (DeadReason::Rejected, "no", Some(3))
        );
        assert_eq!((read.item.as_str(), data), ("item-0000000001", node));
    }

    #[test]
    fn long_foreign_texts_are_shortened() {
        let long = "ä".repeat(DETAIL);
        let letter = format!(r#"{{"version":1,"reason":"{long}","detail":"{long}","item":"{long}"}}"#) + "\n";
        let (head, _) = Head::read(&letter.into());
        let DeadReason::Other(reason) = head.reason else { panic!("known: {:?}", head.reason) };
        assert_eq!([reason.len(), head.detail.len(), head.item.len()], [DETAIL; 3]);
    }

    #[test]
    fn a_letter_of_a_later_version_or_a_broken_one_is_a_letter() {
        let (later, data) =
            Head::read(&Bytes::from_static(b"{\"version\":2,\"reason\":\"eaten\",\"x\":1}\nn"));
        assert_eq!((later.reason, &data[..]), (DeadReason::Other("eaten".to_owned()), &b"n"[..]));
        for broken in [&b"junk"[..], b"junk\nmore", b"", b"{}\n"] {
            let (head, data) = Head::read(&Bytes::copy_from_slice(broken));
            assert_eq!((head.reason, &data[..]), (DeadReason::Other(String::new()), broken));
        }
    }
}
