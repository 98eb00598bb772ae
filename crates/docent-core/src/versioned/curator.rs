use crate::guard::REVOKE;

/// Reads the number in a node of Curator's `SharedCount`: the first four bytes, the highest first. `None`
/// when there are fewer.
pub fn decode_count(data: &[u8]) -> Option<i32> {
    data.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

/// True for the data of a contender that somebody asked to give up its place.
pub fn is_revocation(data: &[u8]) -> bool {
    data == REVOKE
}
