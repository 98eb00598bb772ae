use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why a server's state is not loaded from its file, or not kept in it. The file is as it was before.
#[derive(Debug)]
pub struct KeepError {
    file: PathBuf,
    fault: KeepFault,
}

/// Fault of a file that keeps a server's state.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeepFault {
    /// It cannot be read.
    Read(io::Error),
    /// It, or its folder, cannot be written.
    Write(io::Error),
    /// Another server uses it.
    InUse,
    /// It cannot be locked against other servers.
    Lock(io::Error),
    /// It is a folder, a device or something else that is no file.
    NotAFile,
    /// It begins in another way than the files that servers write.
    Unknown,
    /// It is of a version of the format that this server cannot read.
    Version(u32),
    /// It ends too early.
    CutOff {
        /// Bytes that are missing.
        missing: u64,
    },
    /// Bytes in it have changed since it was written, or were added.
    Damaged,
    /// It is whole, but no server can have been in that state.
    Content(&'static str),
}

impl KeepError {
    pub(super) fn new(file: &Path, fault: KeepFault) -> Self {
        Self { file: file.to_owned(), fault }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its fault.
    pub fn fault(&self) -> &KeepFault {
        &self.fault
    }

    /// The fault without the file.
    pub fn into_fault(self) -> KeepFault {
        self.fault
    }

    /// True when the same call may succeed later: another server uses the file, or the operating system
    /// refused to lock, read or write it.
    pub fn is_retryable(&self) -> bool {
        use KeepFault::{InUse, Lock, Read, Write};
        matches!(self.fault, Read(_) | Write(_) | Lock(_) | InUse)
    }

    /// Always false: the file is replaced as a whole or not at all.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// `None`: it is about no node.
    pub fn path(&self) -> Option<&str> {
        None
    }
}

impl fmt::Display for KeepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keep {:?}: {}", self.file, self.fault)
    }
}

impl std::error::Error for KeepError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            KeepFault::Read(error) | KeepFault::Write(error) | KeepFault::Lock(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for KeepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Write(error) => write!(f, "cannot be written: {error}"),
            Self::InUse => f.write_str("is in use by another server"),
            Self::Lock(error) => write!(f, "cannot be locked: {error}"),
            Self::NotAFile => f.write_str("is not a file"),
            Self::Unknown => f.write_str("was not written by this server: it begins in another way"),
            Self::Version(version) => {
                write!(
                    f,
                    "has version {version} of the format, this server reads version {}",
                    super::format::VERSION
                )
            }
            Self::CutOff { missing } => write!(f, "is cut off: {missing} bytes are missing"),
            Self::Damaged => f.write_str("is damaged: its checksum does not match"),
            Self::Content(reason) => write!(f, "holds no state of a server: {reason}"),
        }
    }
}
