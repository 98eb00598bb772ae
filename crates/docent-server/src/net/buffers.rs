//! The bytes of a link on their way in and out. A part of a buffer keeps all of it in memory: these know how
//! large theirs are, and leave one that is too large for what is left in it.

use super::links::KEPT;
use bytes::{BufMut, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Most bytes asked of the transport at a time, unless a large buffer has room for more.
const CHUNK: usize = 16 << 10;

/// Bytes that came in and were not answered yet. Their buffer is less than twice as large, or small.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) bytes: BytesMut,
    /// The next request, which was in front of the bytes and waits.
    pub(super) request: Option<Bytes>,
    /// Bytes that are missing of the next request, if it is a large one.
    pub(super) missing: Option<usize>,
    /// Bytes of the whole buffer, of which the front may have been taken off.
    size: usize,
    /// Most bytes that are read next.
    most: usize,
}

impl Incoming {
    /// Bytes that wait.
    pub(super) fn held(&self) -> usize {
        self.bytes.len() + self.request.as_ref().map_or(0, Bytes::len)
    }

    /// True if bytes may be read now.
    pub(super) fn has_room(&self) -> bool {
        self.most > 0
    }

    /// Makes room to read more of the next request. If that is a large one, nothing behind it is read.
    pub(super) fn reserve(&mut self) {
        self.grow();
        self.most = self.missing.unwrap_or(usize::MAX);
    }

    /// Makes room to read a little ahead, while the next request waits.
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
            // The front of a small buffer is used again.
            self.bytes.reserve(CHUNK);
        } else {
            let mut larger = BytesMut::with_capacity((2 * length).max(length + CHUNK));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
            self.size = 0;
        }
        self.size = self.size.max(self.bytes.capacity());
    }

    /// Reads bytes into the room there is, and returns how many came; 0 at the end.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn read<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> io::Result<usize> {
        reader.read_buf(&mut (&mut self.bytes).limit(self.most)).await
    }

    /// Leaves a buffer that is too large for the bytes that were not taken off its front.
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
    /// Bytes there were when the buffer was made.
    size: usize,
    /// Bytes that were written since the link was taken in.
    written: u64,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that count as waiting: those of the whole buffer, written or not.
    pub(super) fn held(&self) -> usize {
        self.size
    }

    /// Bytes that were written since the link was taken in.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Takes the next bytes to write, once there are no others.
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

/// Copy of what is left in a buffer, if that is large and mostly done with.
fn smaller(rest: &BytesMut, size: usize) -> Option<BytesMut> {
    (size > KEPT && rest.len() < size / 2).then(|| BytesMut::from(&rest[..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::proptest;

    /// Checks that the buffer that `bytes` are a part of is not much larger than they are.
    fn assert_keeps_little(bytes: &mut BytesMut) {
        let most = 2 * bytes.len().max(2 * CHUNK);
        assert!(!bytes.try_reclaim(most), "there is room for {most} beside {}", bytes.len());
    }

    #[tokio::test]
    async fn what_is_left_of_a_reply_keeps_no_large_buffer() {
        let mut output = Outgoing::default();
        output.fill(BytesMut::from(&[7; 1 << 20][..]));
        while output.bytes.len() >= 1_000 {
            let (mut near, _far) = tokio::io::duplex(1_000);
            assert_eq!(output.write(&mut near).await.expect("there is room"), 1_000);
            assert!(output.held() >= output.bytes.len());
            assert_keeps_little(&mut output.bytes);
        }
        assert_eq!(output.bytes, vec![7; (1 << 20) % 1_000]);
        output.write(&mut tokio::io::sink()).await.expect("a sink takes all");
        assert!(output.is_empty() && output.held() == 0);
    }

    proptest! {
        #[test]
        fn a_part_of_a_request_keeps_no_large_buffer(
            steps in vec((0..200_000_usize, 0..=100_usize, 1..4_usize), 1..20),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs nothing");
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
