use bytes::Bytes;
use docent::queue::{Codec, CodecError, Json};

/// Version of a client. The older version cannot decode some items, and does not put them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Older,
    Newer,
}

/// If there are two versions, one item in this number is of the newer kind.
const KINDS: u64 = 3;

/// Returns true for an item that only newer clients can decode.
pub(super) fn is_newer_kind(item: u64) -> bool {
    item % KINDS == 1
}

impl Version {
    /// Returns true if a client of this version can decode an item.
    pub(super) fn can_decode(self, item: u64) -> bool {
        self == Self::Newer || !is_newer_kind(item)
    }
}

/// JSON, as a client of this version decodes it.
#[derive(Debug)]
pub(super) struct Versioned(pub(super) Version);

impl Codec<u64> for Versioned {
    fn encode(&self, item: &u64) -> Result<Bytes, CodecError> {
        Json::new().encode(item)
    }

    fn decode(&self, data: &Bytes) -> Result<u64, CodecError> {
        let item = Json::new().decode(data)?;
        match self.0.can_decode(item) {
            true => Ok(item),
            false => Err(CodecError::new("the item is of a newer kind")),
        }
    }
}
