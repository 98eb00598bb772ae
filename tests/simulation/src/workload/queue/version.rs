use bytes::Bytes;
use docent::queue::{Codec, CodecError, Json};

/// Version of a client. The older one cannot decode some items, and puts none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Older,
    Newer,
}

/// Of so many items one is of the newer kind, where there are two versions.
const KINDS: u64 = 3;

/// True for an item that only newer clients can decode.
pub(super) fn is_newer_kind(item: u64) -> bool {
    item % KINDS == 1
}

impl Version {
    /// True when a client of this version can decode an item.
    pub(super) fn can_decode(self, item: u64) -> bool {
        self == Self::Newer || !is_newer_kind(item)
    }
}

/// JSON, as a client of a version reads it.
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
            false => Err(CodecError::new("it is of a newer kind")),
        }
    }
}
