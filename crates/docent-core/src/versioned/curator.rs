use crate::guard::REVOKE;

/// Decodes the number in a node of Curator's `SharedCount`: the first four bytes, in big-endian order.
/// Returns `None` if there are fewer bytes.
pub fn decode_count(data: &[u8]) -> Option<i32> {
    data.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

/// Returns true for the data of a contender that was asked to give up its place.
pub fn is_revocation(data: &[u8]) -> bool {
    data == REVOKE
}
