use crate::DecodeError;
use crate::wire::length;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Splits a stream of bytes into frames: a four-byte length, then that many bytes.
///
/// No memory is reserved when a frame is announced: memory grows as the frame's bytes arrive.
#[derive(Debug, Clone, Copy)]
pub struct Frames {
    limit: usize,
}

impl Frames {
    /// Creates a splitter that accepts frames of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// Removes the next complete frame from the front of `received`, and returns the frame without its
    /// length. Returns `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`DecodeError::FrameLength`] if the announced length is negative or above the limit. The stream is
    /// unusable afterwards, unless the caller discards the length and the announced number of bytes.
    pub fn next(&self, received: &mut BytesMut) -> Result<Option<Bytes>, DecodeError> {
        let Some(mut prefix) = received.get(..4) else { return Ok(None) };
        let announced = prefix.get_i32();
        let size = usize::try_from(announced)
            .ok()
            .filter(|size| *size <= self.limit)
            .ok_or(DecodeError::FrameLength { length: announced, limit: self.limit })?;
        if received.len() - 4 < size {
            return Ok(None);
        }
        received.advance(4);
        Ok(Some(received.split_to(size).freeze()))
    }
}

/// Appends one frame to `out`: `body` writes the content, and the length is filled in afterwards.
pub fn write_frame<B: BufMut + AsMut<[u8]>>(out: &mut B, body: impl FnOnce(&mut B)) {
    let start = out.as_mut().len();
    out.put_i32(0);
    body(out);
    let frame = &mut out.as_mut()[start..];
    let size = length(frame.len() - 4);
    frame[..4].copy_from_slice(&size.to_be_bytes());
}
