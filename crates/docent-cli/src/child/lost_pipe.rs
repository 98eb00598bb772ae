//! Pipe that shows a command that its lease has ended: reading from it returns end of file.

use super::proc;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

/// Variable with the number of the descriptor to read from.
pub(super) const VARIABLE: &str = "DOCENT_LOST_FD";

/// Both ends of the pipe. Nothing is ever written: the reader sees end of file once this value is dropped or
/// docent's process ends.
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

    /// Returns the descriptor of the reading end in this process.
    pub(super) fn number(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}

/// Opens the reading end `number` of `parent` in this process, for the command that it becomes, and returns
/// its descriptor. The descriptor is not inherited, because every other process that the parent starts would
/// inherit it as well.
pub(super) fn keep_open(parent: i32, number: RawFd) -> io::Result<RawFd> {
    use rustix::io::{FdFlags, fcntl_setfd};
    use std::os::fd::IntoRawFd;
    // Systems other than Linux have no such path; the command then runs without this pipe.
    let path = proc::descriptor(parent, number).ok_or(io::ErrorKind::Unsupported)?;
    let end = std::fs::File::open(path)?;
    fcntl_setfd(&end, FdFlags::empty())?;
    Ok(end.into_raw_fd())
}
