use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Error of loading a server's state from its file, or saving it there. The file has not been changed.
#[derive(Debug)]
pub struct KeepError {
    file: PathBuf,
    fault: KeepFault,
}

/// Reason why a state file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeepFault {
    /// The file cannot be read.
    Read(io::Error),
    /// The file or its folder cannot be written.
    Write(io::Error),
    /// Another server uses the file.
    InUse,
    /// The file cannot be locked against other servers.
    Lock(io::Error),
    /// The path is a folder, a device, or something else that is not a regular file.
    NotAFile,
    /// The file does not start like a file that a server has written.
    Unknown,
    /// The file has a format version that this server cannot read.
    Version(u32),
    /// The file is truncated.
    CutOff {
        /// Number of missing bytes.
        missing: u64,
    },
    /// The file has been changed since it was written, or bytes were added to it.
    Damaged,
    /// The file is intact, but no server can have been in the state that it describes.
    Content(&'static str),
}

impl KeepError {
    pub(super) fn new(file: &Path, fault: KeepFault) -> Self {
        Self { file: file.to_owned(), fault }
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the reason.
    pub fn fault(&self) -> &KeepFault {
        &self.fault
    }

    /// Converts the error into its reason, without the path.
    pub fn into_fault(self) -> KeepFault {
        self.fault
    }

    /// Returns whether a retry may succeed: another server uses the file, or the operating system refused to
    /// lock, read or write it.
    pub fn is_retryable(&self) -> bool {
        use KeepFault::{InUse, Lock, Read, Write};
        matches!(self.fault, Read(_) | Write(_) | Lock(_) | InUse)
    }

    /// Returns `false`: the file is replaced as a whole or not at all.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// Returns `None`: the error does not concern a node.
    pub fn path(&self) -> Option<&str> {
        None
    }
}

#[cfg(feature = "client-error")]
impl KeepError {
    pub(crate) fn kind(&self) -> docent_core::ErrorKind {
        use docent_core::ErrorKind;
        match self.fault {
            _ if self.is_retryable() => ErrorKind::Unavailable,
            KeepFault::NotAFile => ErrorKind::InvalidInput,
            _ => ErrorKind::InvalidData,
        }
    }
}

#[cfg(feature = "client-error")]
impl From<KeepError> for docent_core::Error {
    fn from(error: KeepError) -> Self {
        Self::of_recipe(error.kind(), "keep", error)
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
            Self::Read(error) => write!(f, "cannot read the file: {error}"),
            Self::Write(error) => write!(f, "cannot write the file: {error}"),
            Self::InUse => f.write_str("the file is in use by another server"),
            Self::Lock(error) => write!(f, "cannot lock the file: {error}"),
            Self::NotAFile => f.write_str("the path is not a regular file"),
            Self::Unknown => f.write_str("the file was not written by this server: unknown first line"),
            Self::Version(version) => {
                write!(
                    f,
                    "the file has format version {version}, but this server reads version {}",
                    super::format::VERSION
                )
            }
            Self::CutOff { missing } => write!(f, "the file is truncated: {missing} bytes are missing"),
            Self::Damaged => f.write_str("the file is damaged: its checksum does not match"),
            Self::Content(reason) => write!(f, "the file contains no valid server state: {reason}"),
        }
    }
}
