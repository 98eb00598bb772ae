use crate::exit::Failure;
use crate::input;
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Size of the read buffer, in bytes.
const READ: usize = 64 * 1024;

/// Lines of an input, without their line ends.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// Beginning of the next line.
    open: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(READ, input), open: Vec::new() }
    }

    /// Returns the next line, or `None` at the end. The last line may lack a line end.
    ///
    /// # Errors
    /// `Other` if the input cannot be read, `BadData` for a line that is too long for an item. The next call
    /// fails in the same way.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if self.open.len() > input::LONGEST {
                return Err(input::too_long("a line"));
            }
            let read = self.input.fill_buf().await.map_err(|error| input::unreadable(&error))?;
            let (taken, is_whole) = match read.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (read.len(), read.is_empty()),
            };
            let is_end = read.is_empty();
            self.open.extend_from_slice(&read[..taken - usize::from(is_whole && !is_end)]);
            self.input.consume(taken);
            if is_end && self.open.is_empty() {
                return Ok(None);
            }
            if is_whole {
                return Ok(Some(std::mem::take(&mut self.open).into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::FailureKind;

    #[tokio::test]
    async fn lines_end_at_a_newline_or_at_the_end_of_the_input() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\n\nb c\r\n", &["a", "", "b c\r"]),
            ("\n", &[""]),
        ] {
            let mut lines = Lines::new(text.as_bytes());
            let mut all = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                all.push(String::from_utf8(line.to_vec()).unwrap());
            }
            assert_eq!(all, expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_line_may_be_longer_than_one_read() {
        let text = format!("{}\nb", "x".repeat(3 * READ + 1));
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().await.unwrap().unwrap().len(), 3 * READ + 1);
        assert_eq!(lines.next().await.unwrap().unwrap(), "b");
    }

    #[tokio::test]
    async fn a_line_without_a_newline_is_rejected_before_it_fills_the_memory() {
        let mut lines = Lines::new(tokio::io::repeat(b'x'));
        for _ in 0..2 {
            assert_eq!(lines.next().await.unwrap_err().kind(), FailureKind::BadData);
        }
    }
}
