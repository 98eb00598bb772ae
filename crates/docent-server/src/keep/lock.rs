use super::error::KeepFault;
use super::file::{MODE, beside};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Exclusive use of a state file by one server.
///
/// The lock is held on a second file in the same folder, because each save replaces the state file itself.
/// The operating system releases the lock when the process ends for any reason.
///
/// # On drop
/// Other servers can use the file.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Locks the file `used`, whose path must not be a symbolic link.
    pub(super) fn acquire(used: &Path) -> Result<Self, KeepFault> {
        let path = beside(used, ".lock").map_err(KeepFault::Write)?;
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(MODE);
            let file = options.open(&path).map_err(KeepFault::Write)?;
            if !planted!(KeepFileUnlocked) {
                match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => {}
                    Err(Errno::WOULDBLOCK) => return Err(KeepFault::InUse),
                    Err(error) => return Err(KeepFault::Lock(error.into())),
                }
            }
            // The server that held the lock may have removed its file after it was opened here. Other servers
            // would then lock a different file.
            if is_at(&file, &path).map_err(KeepFault::Lock)? {
                return Ok(Self { path, file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, an empty file remains, which the next server locks.
        let _ = fs::remove_file(&self.path);
        // A child process that is being started has a copy of the descriptor until it executes its own
        // program. Closing this descriptor would then not release the lock.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Returns whether `file` is the file at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
