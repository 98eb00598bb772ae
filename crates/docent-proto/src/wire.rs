//! Jute's primitive types: big-endian integers, length-prefixed buffers and strings, counted vectors; and
//! frames, each of which has its length in front.

use crate::DecodeError;
use crate::text::text_of;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Value that can be written to and read from the wire.
pub trait Record: Sized {
    /// Appends the record to `out`.
    fn write(&self, out: &mut impl BufMut);

    /// Reads the record from the front of `reader`.
    ///
    /// # Errors
    /// If the bytes are not such a record.
    fn read(reader: &mut Reader) -> Result<Self, DecodeError>;

    /// Reads a record that consists of all `bytes`.
    ///
    /// # Errors
    /// If the bytes are not such a record, or if bytes are left after it.
    fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let record = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(record)
    }
}

/// Reads primitive values from received bytes. Buffers are slices of those bytes, not copies.
#[derive(Debug, Clone)]
pub struct Reader {
    bytes: Bytes,
}

impl Reader {
    /// Creates a reader of `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// Returns the bytes that have not been read yet.
    pub fn into_rest(self) -> Bytes {
        self.bytes
    }

    /// Returns whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] if bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.bytes.len())) }
    }

    fn need(&self, needed: usize) -> Result<(), DecodeError> {
        let left = self.bytes.len();
        if needed <= left { Ok(()) } else { Err(DecodeError::Truncated { needed, left }) }
    }

    pub(crate) fn bool(&mut self) -> Result<bool, DecodeError> {
        self.need(1)?;
        match self.bytes.get_u8() {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::InvalidBool(other)),
        }
    }

    pub(crate) fn i32(&mut self) -> Result<i32, DecodeError> {
        self.need(4)?;
        Ok(self.bytes.get_i32())
    }

    pub(crate) fn i64(&mut self) -> Result<i64, DecodeError> {
        self.need(8)?;
        Ok(self.bytes.get_i64())
    }

    /// Reads the next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.need(N)?;
        let mut array = [0; N];
        self.bytes.copy_to_slice(&mut array);
        Ok(array)
    }

    /// Reads a length prefix. Returns `None` for −1, which means null.
    fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        let length = self.i32()?;
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(DecodeError::NegativeLength(length)),
        }
    }

    pub(crate) fn buffer(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(length) = self.length()? else { return Ok(None) };
        self.need(length)?;
        Ok(Some(self.bytes.split_to(length)))
    }

    pub(crate) fn string(&mut self) -> Result<String, DecodeError> {
        let length = self.length()?.ok_or(DecodeError::InvalidString)?;
        self.need(length)?;
        // Copies only the string's bytes: converting the last slice of a frame into a vector would keep the
        // whole buffer of the frame.
        let string = std::str::from_utf8(&self.bytes[..length]).map(str::to_owned);
        self.bytes.advance(length);
        string.map_err(|_| DecodeError::InvalidString)
    }

    /// Reads a boolean of a request as the real server does: every value except 0 is true.
    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        self.need(1)?;
        Ok(self.bytes.get_u8() != 0)
    }

    /// Reads a string of a request that must not be null, as the real server does.
    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        self.optional_text()?.ok_or(DecodeError::InvalidString)
    }

    /// Reads a string of a request as the real server does. Returns `None` for null.
    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, DecodeError> {
        Ok(self.buffer()?.map(|bytes| text_of(&bytes)))
    }

    /// Reads a vector of a request as the real server does. Returns `None` for null, and an empty vector for
    /// any other negative count. Memory grows with the items that are present; nothing is reserved.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        match self.i32()? {
            -1 => Ok(None),
            count => (0..count).map(|_| item(self)).collect::<Result<_, _>>().map(Some),
        }
    }

    /// Reads a counted vector; null becomes an empty vector. Memory grows with the items that are present,
    /// not with the count.
    pub(crate) fn vec<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        const SMALLEST_ITEM: usize = 4;
        let count = self.length()?.unwrap_or(0);
        let mut items = Vec::with_capacity(count.min(self.bytes.len() / SMALLEST_ITEM));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }
}

/// Writes primitive values.
pub(crate) trait Write: BufMut {
    fn bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    fn buffer(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.put_i32(-1),
            Some(bytes) => {
                self.put_i32(length(bytes.len()));
                self.put_slice(bytes);
            }
        }
    }

    fn string(&mut self, value: &str) {
        self.buffer(Some(value.as_bytes()));
    }

    fn vec<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.put_i32(length(items.len()));
        for value in items {
            item(self, value);
        }
    }
}

impl<B: BufMut + ?Sized> Write for B {}

/// Converts a length to its form on the wire. Callers keep frames far below 2 GiB; a longer length cannot be
/// represented.
pub(crate) fn length(value: usize) -> i32 {
    i32::try_from(value).expect("a length inside a frame never exceeds i32::MAX")
}

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
