//! The data of a dead letter: a header as one line of JSON, then the item's node as it was.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

const VERSION: u32 = 1;
/// Longest name of a reason, and longest text about one, in bytes.
const DETAIL: usize = 500;

/// Reason for which an item is a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// It was handed out as often as is allowed, and never acknowledged.
    TooManyDeliveries,
    /// It could not be decoded.
    Undecodable,
    /// A consumer [rejected](crate::Delivery::reject) it.
    Rejected,
    /// A reason that this version does not know, by its name in the letter; empty where the letter itself
    /// cannot be read.
    Other(String),
}

impl DeadReason {
    /// The name, as it is in the letter; empty where the letter itself cannot be read.
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
            Self::TooManyDeliveries => f.write_str("it was handed out too often"),
            Self::Undecodable => f.write_str("it could not be decoded"),
            Self::Rejected => f.write_str("a consumer rejected it"),
            Self::Other(name) if name.is_empty() => f.write_str("the letter cannot be read"),
            Self::Other(name) => write!(f, "of the unknown reason {name:?}"),
        }
    }
}

/// Header of a dead letter.
#[derive(Debug)]
pub struct Head {
    /// Reason for which the item is dead.
    pub reason: DeadReason,
    /// More about that.
    pub detail: String,
    /// Number of times the item was handed out, where that is counted.
    pub deliveries: Option<u32>,
    /// The name of the item's node.
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

    /// The data of a letter about `node`.
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

    /// The header of a letter and the item's node. A letter that cannot be read is a letter, too: with all
    /// its bytes as the node.
    pub fn read(letter: &Bytes) -> (Self, Bytes) {
        let unread = |detail: String| {
            let reason = DeadReason::Other(String::new());
            (Self { reason, detail, deliveries: None, item: String::new() }, letter.clone())
        };
        let Some(end) = letter.iter().position(|byte| *byte == b'\n') else {
            return unread("it has no header".to_owned());
        };
        match serde_json::from_slice::<Line>(&letter[..end]) {
            Ok(Line { reason, detail, deliveries, item, .. }) => {
                // Anybody may have written it.
                let (detail, item) = (shortened(detail), shortened(item));
                let head = Self { reason: DeadReason::named(reason), detail, deliveries, item };
                (head, letter.slice(end + 1..))
            }
            Err(_) => unread("its header is not as expected".to_owned()),
        }
    }
}

/// At most [`DETAIL`] bytes of a text.
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
    fn long_texts_that_others_wrote_are_shortened() {
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
