use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Reason why bytes are not a valid image of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadImage(pub(crate) &'static str);

const ENDS: BadImage = BadImage("the image ends within a field");

/// Reads the fields of an image. A length field alone never causes memory to be reserved.
pub(super) struct Fields(Bytes);

impl Fields {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn finish(self) -> Result<(), BadImage> {
        if self.0.is_empty() { Ok(()) } else { Err(BadImage("there are bytes after the end of the image")) }
    }

    pub(super) fn u8(&mut self) -> Result<u8, BadImage> {
        self.0.try_get_u8().map_err(|_| ENDS)
    }

    pub(super) fn u32(&mut self) -> Result<u32, BadImage> {
        self.0.try_get_u32().map_err(|_| ENDS)
    }

    pub(super) fn i32(&mut self) -> Result<i32, BadImage> {
        self.0.try_get_i32().map_err(|_| ENDS)
    }

    pub(super) fn i64(&mut self) -> Result<i64, BadImage> {
        self.0.try_get_i64().map_err(|_| ENDS)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadImage> {
        let mut array = [0; N];
        self.0.try_copy_to_slice(&mut array).map_err(|_| ENDS)?;
        Ok(array)
    }

    /// Returns a copy of the next bytes, which does not keep the image in memory.
    pub(super) fn bytes(&mut self) -> Result<Bytes, BadImage> {
        let length = usize::try_from(self.u32()?).map_err(|_| ENDS)?;
        if length > self.0.len() {
            return Err(ENDS);
        }
        Ok(Bytes::copy_from_slice(&self.0.split_to(length)))
    }

    pub(super) fn string(&mut self) -> Result<String, BadImage> {
        String::from_utf8(self.bytes()?.into()).map_err(|_| BadImage("a string is not valid UTF-8"))
    }
}

/// Appends bytes, preceded by their length.
pub(super) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    // Frames are far smaller than 4 GiB, and so is everything that clients can store.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.put_u32(length);
    out.put_slice(&bytes[..length as usize]);
}
