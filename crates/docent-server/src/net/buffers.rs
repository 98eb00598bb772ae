//! The buffers for the input and output of a link. A slice of a buffer keeps the whole buffer in memory. The
//! types here therefore track the size of their buffer, and copy the rest to a smaller one when most of it is
//! used up.

use super::links::KEPT;
use bytes::{BufMut, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum bytes to read at a time, unless a large buffer has room for more.
const CHUNK: usize = 16 << 10;

/// Bytes that were received and are not answered yet. The buffer is small, or less than twice as large as its
/// contents.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) bytes: BytesMut,
    /// The next request, if it has been taken from the front of `bytes` and waits to be answered.
    pub(super) request: Option<Bytes>,
    /// Number of bytes still missing from the next request, if it is a large one.
    pub(super) missing: Option<usize>,
    /// Size in bytes of the whole buffer, including the part already taken from its front.
    size: usize,
    /// Maximum bytes of the next read.
    most: usize,
}

impl Incoming {
    /// Returns the number of waiting bytes.
    pub(super) fn held(&self) -> usize {
        self.bytes.len() + self.request.as_ref().map_or(0, Bytes::len)
    }

    /// Returns whether bytes may be read now.
    pub(super) fn has_room(&self) -> bool {
        self.most > 0
    }

    /// Makes room to read more of the next request. If it is a large request, nothing after it is read.
    pub(super) fn reserve(&mut self) {
        self.grow();
        self.most = self.missing.unwrap_or(usize::MAX);
    }

    /// Makes room to read a little ahead while the next request waits.
    pub(super) fn reserve_ahead(&mut self) {
        self.most = CHUNK.saturating_sub(self.bytes.len());
        if self.most > 0 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let length = self.bytes.len();
        if self.bytes.capacity() - length >= CHUNK {
            return;
        }
        if length == 0 {
            // Reuses the front of a small buffer.
            self.bytes.reserve(CHUNK);
        } else {
            let mut larger = BytesMut::with_capacity((2 * length).max(length + CHUNK));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
            self.size = 0;
        }
        self.size = self.size.max(self.bytes.capacity());
    }

    /// Reads bytes into the available room, and returns their number; 0 at the end of the stream.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn read<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> io::Result<usize> {
        reader.read_buf(&mut (&mut self.bytes).limit(self.most)).await
    }

    /// Moves the remaining bytes to a smaller buffer if the present one is too large for them.
    pub(super) fn settle(&mut self) {
        if let Some(smaller) = smaller(&self.bytes, self.size) {
            self.size = smaller.capacity();
            self.bytes = smaller;
        }
    }
}

#[cfg(test)]
impl From<BytesMut> for Incoming {
    fn from(bytes: BytesMut) -> Self {
        let size = bytes.capacity();
        Self { bytes, size, ..Self::default() }
    }
}

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: BytesMut,
    /// Number of bytes when the buffer was created.
    size: usize,
    /// Number of bytes written since the link was accepted.
    written: u64,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of bytes that count as queued: those of the whole buffer, written or not.
    pub(super) fn held(&self) -> usize {
        self.size
    }

    /// Returns the number of bytes written since the link was accepted.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Sets the next bytes to write, when all previous ones have been written.
    pub(super) fn fill(&mut self, bytes: BytesMut) {
        (self.size, self.bytes) = (bytes.len(), bytes);
    }

    /// Writes some of the bytes, and returns how many.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn write<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Result<usize> {
        let count = writer.write_buf(&mut self.bytes).await?;
        self.written += count as u64;
        if self.bytes.is_empty() {
            self.fill(BytesMut::new());
        } else if let Some(smaller) = smaller(&self.bytes, self.size) {
            self.fill(smaller);
        }
        Ok(count)
    }
}

/// Returns a copy of the rest of a buffer, if the buffer is large and mostly used up.
fn smaller(rest: &BytesMut, size: usize) -> Option<BytesMut> {
    (size > KEPT && rest.len() < size / 2).then(|| BytesMut::from(&rest[..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::proptest;

    /// Asserts that the buffer behind `bytes` is not much larger than `bytes`.
    fn assert_keeps_little(bytes: &mut BytesMut) {
        let most = 2 * bytes.len().max(2 * CHUNK);
        assert!(!bytes.try_reclaim(most), "the buffer has room for {most} bytes besides its {}", bytes.len());
    }

    #[tokio::test]
    async fn the_rest_of_a_reply_keeps_no_large_buffer() {
        let mut output = Outgoing::default();
        output.fill(BytesMut::from(&[7; 1 << 20][..]));
        while output.bytes.len() >= 1_000 {
            let (mut near, _far) = tokio::io::duplex(1_000);
            assert_eq!(output.write(&mut near).await.expect("there is room"), 1_000);
            assert!(output.held() >= output.bytes.len());
            assert_keeps_little(&mut output.bytes);
        }
        assert_eq!(output.bytes, vec![7; (1 << 20) % 1_000]);
        output.write(&mut tokio::io::sink()).await.expect("a sink accepts everything");
        assert!(output.is_empty() && output.held() == 0);
    }

    proptest! {
        #[test]
        fn a_part_of_a_request_keeps_no_large_buffer(
            steps in vec((0..200_000_usize, 0..=100_usize, 1..4_usize), 1..20),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a current-thread runtime without drivers can be built");
            let (mut input, mut sent, mut taken) = (Incoming::default(), 0_usize, 0_usize);
            for (length, percent, parts) in steps {
                let bytes: Vec<u8> = (sent..sent + length).map(|n| n.to_le_bytes()[0]).collect();
                let mut reader = &bytes[..];
                while !reader.is_empty() {
                    input.reserve();
                    runtime.block_on(input.read(&mut reader)).expect("a slice can be read");
                    assert_keeps_little(&mut input.bytes);
                }
                sent += length;
                for _ in 0..parts {
                    let frame = input.bytes.split_to(input.bytes.len() * percent / 100).freeze();
                    assert!(frame.iter().enumerate().all(|(n, byte)| *byte == (taken + n).to_le_bytes()[0]));
                    taken += frame.len();
                    drop(frame);
                    input.settle();
                    assert_keeps_little(&mut input.bytes);
                }
            }
        }
    }
}
