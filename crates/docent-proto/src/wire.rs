//! Jute's primitive types: big-endian integers, length-prefixed buffers and strings, counted vectors.

use crate::DecodeError;
use crate::text::text_of;
use bytes::{Buf, BufMut, Bytes};

/// A value that can be written to and read from the wire.
pub trait Record: Sized {
    /// Appends the record to `out`.
    fn write(&self, out: &mut impl BufMut);

    /// Reads the record from the front of `reader`.
    ///
    /// # Errors
    /// When the bytes are not such a record.
    fn read(reader: &mut Reader) -> Result<Self, DecodeError>;

    /// Reads a record that takes up all of `bytes`.
    ///
    /// # Errors
    /// When the bytes are not such a record, or go on after it.
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
    /// Reads from the front of `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// The bytes that have not been read yet.
    pub fn into_rest(self) -> Bytes {
        self.bytes
    }

    /// True when everything was read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] when bytes are left.
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

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.need(N)?;
        let mut array = [0; N];
        self.bytes.copy_to_slice(&mut array);
        Ok(array)
    }

    /// A length prefix: `None` for −1, which stands for null.
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
        // A copy of just these bytes: turned into a vector, the last slice of a frame would keep the frame's
        // whole buffer.
        let string = std::str::from_utf8(&self.bytes[..length]).map(str::to_owned);
        self.bytes.advance(length);
        string.map_err(|_| DecodeError::InvalidString)
    }

    /// A boolean of a request, as the real server reads it: all but 0 is true.
    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        self.need(1)?;
        Ok(self.bytes.get_u8() != 0)
    }

    /// A string of a request that must not be null, as the real server reads it.
    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        self.optional_text()?.ok_or(DecodeError::InvalidString)
    }

    /// A string of a request, as the real server reads it; `None` for null.
    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, DecodeError> {
        Ok(self.buffer()?.map(|bytes| text_of(&bytes)))
    }

    /// A vector of a request, as the real server reads it: `None` for null, and empty for any other count
    /// below zero. Memory grows with the items that are there, and nothing is reserved.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        match self.i32()? {
            -1 => Ok(None),
            count => (0..count).map(|_| item(self)).collect::<Result<_, _>>().map(Some),
        }
    }

    /// A counted vector; null reads as empty. Memory grows with the items that are there, not with the count.
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

/// A length as the wire holds it. Callers keep frames far below 2 GiB; a longer one cannot be expressed at
/// all.
pub(crate) fn length(value: usize) -> i32 {
    i32::try_from(value).expect("nothing that fits in a frame is longer than i32::MAX")
}
