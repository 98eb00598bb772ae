use super::error::KeepFault;
use super::file::{MODE, beside};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Exclusive use of a file by one server.
///
/// A second file beside it is locked, because the file itself is replaced by each save. The operating system
/// unlocks it when the process ends, however that happens.
///
/// # On drop
/// Other servers can use the file.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Locks the use of `used`, the file itself and no link to it.
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
            // The server that had it locked may have removed it since it was opened here. Then other servers
            // lock another file.
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
        // A process that this one is just starting has a copy of the descriptor until its own program runs.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// True if `file` is the file at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
