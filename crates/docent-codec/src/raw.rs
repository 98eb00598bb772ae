use crate::{Codec, CodecError};
use bytes::Bytes;

/// Codec that leaves values unchanged: [`Bytes`], `Vec<u8>`, or `String`, which must be UTF-8.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Raw;

impl Codec<Bytes> for Raw {
    fn encode(&self, value: &Bytes) -> Result<Bytes, CodecError> {
        Ok(value.clone())
    }

    fn decode(&self, data: &Bytes) -> Result<Bytes, CodecError> {
        Ok(data.clone())
    }
}

impl Codec<Vec<u8>> for Raw {
    fn encode(&self, value: &Vec<u8>) -> Result<Bytes, CodecError> {
        Ok(Bytes::copy_from_slice(value))
    }

    fn decode(&self, data: &Bytes) -> Result<Vec<u8>, CodecError> {
        Ok(data.to_vec())
    }
}

impl Codec<String> for Raw {
    fn encode(&self, value: &String) -> Result<Bytes, CodecError> {
        Ok(Bytes::copy_from_slice(value.as_bytes()))
    }

    fn decode(&self, data: &Bytes) -> Result<String, CodecError> {
        match std::str::from_utf8(data) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(CodecError::new(format!("not UTF-8 at byte {}", error.valid_up_to()))),
        }
    }
}
