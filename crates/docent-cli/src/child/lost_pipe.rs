//! Pipe by which a command sees that the lease is over: reading from it ends.

use super::proc;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

/// Variable with the number of the descriptor to read from.
pub(super) const VARIABLE: &str = "DOCENT_LOST_FD";

/// Both ends of the pipe. Nothing is ever written: the other side reads its end once this is dropped, also
/// by the end of our process.
#[derive(Debug)]
pub(super) struct LostPipe {
    reader: PipeReader,
    _writer: PipeWriter,
}

impl LostPipe {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, _writer: writer })
    }

    /// Number of the reading end in this process.
    pub(super) fn number(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}

/// Opens the reading end `number` of `parent` in this process, for the command that it becomes. It is not
/// inherited, because whatever the parent starts meanwhile would inherit it as well. Returns its number here.
pub(super) fn keep_open(parent: i32, number: RawFd) -> io::Result<RawFd> {
    use rustix::io::{FdFlags, fcntl_setfd};
    use std::os::fd::IntoRawFd;
    // Where there is none, as on other systems than Linux, the command goes without.
    let path = proc::descriptor(parent, number).ok_or(io::ErrorKind::Unsupported)?;
    let end = std::fs::File::open(path)?;
    fcntl_setfd(&end, FdFlags::empty())?;
    Ok(end.into_raw_fd())
}
