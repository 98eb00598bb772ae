use crate::CodecError;
use std::str;

/// Returns the data as text.
pub(crate) fn utf8(data: &[u8]) -> Result<&str, CodecError> {
    str::from_utf8(data)
        .map_err(|error| CodecError::new(format!("not UTF-8 at byte {}", error.valid_up_to())))
}
