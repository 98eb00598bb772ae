use super::error::{KeepError, KeepFault};
use super::format;
use super::lock::Lock;
use crate::config::Config;
use crate::state::{Origin, State};
use bytes::Bytes;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Permissions of the file. Only its owner has access, because the file contains session passwords.
pub(super) const MODE: u32 = 0o600;

/// Path of the file that stores a server's state.
#[derive(Debug, Clone)]
pub(crate) struct Keep(PathBuf);

/// A state file that this server uses. Until the value is dropped, other servers cannot use the file.
#[derive(Debug)]
pub(crate) struct KeepFile {
    keep: Keep,
    _lock: Lock,
}

impl Keep {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// Opens the file for exclusive use by this server.
    ///
    /// # Errors
    /// If another server uses the file, the path is not a regular file, or the folder cannot be written.
    pub(crate) fn open(&self) -> Result<KeepFile, KeepError> {
        let is_file = fs::metadata(&self.0).map_or(true, |found| found.is_file());
        let lock = if is_file { Lock::acquire(&self.resolved()) } else { Err(KeepFault::NotAFile) };
        let lock = lock.map_err(|fault| self.error(fault))?;
        Ok(KeepFile { keep: self.clone(), _lock: lock })
    }

    /// Returns the file that the path refers to, with symbolic links resolved.
    fn resolved(&self) -> PathBuf {
        let in_folder = || Some(fs::canonicalize(folder(&self.0)).ok()?.join(self.0.file_name()?));
        fs::canonicalize(&self.0).ok().or_else(in_folder).unwrap_or_else(|| self.0.clone())
    }

    fn error(&self, fault: KeepFault) -> KeepError {
        KeepError::new(&self.0, fault)
    }
}

impl KeepFile {
    /// Loads the state from the file; `None` if there is no file.
    pub(crate) fn load(&self, config: Config, origin: Origin, now: i64) -> Result<Option<State>, KeepError> {
        let Some(bytes) = self.read().map_err(|fault| self.error(fault))? else { return Ok(None) };
        let image = format::read(&bytes).map_err(|fault| self.error(fault))?;
        let state = State::from_image(image, config, origin, now);
        state.map(Some).map_err(|bad| self.error(KeepFault::Content(bad.0)))
    }

    fn read(&self) -> Result<Option<Bytes>, KeepFault> {
        match fs::read(&self.keep.0) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KeepFault::Read(error)),
        }
    }

    /// Replaces the file with one that contains this state, as a whole or not at all.
    pub(crate) fn store(&self, state: &State) -> Result<(), KeepError> {
        let written = write_beside(&self.keep.resolved(), state);
        written.map_err(|error| self.error(KeepFault::Write(error)))
    }

    /// Creates an error about this file.
    pub(crate) fn error(&self, fault: KeepFault) -> KeepError {
        self.keep.error(fault)
    }
}

/// Writes the state to a second file, and renames it to `file` once it is on disk.
fn write_beside(file: &Path, state: &State) -> io::Result<()> {
    let beside = beside(file, ".new")?;
    // A server that was killed while writing may have left this file behind.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write(&beside, state).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    File::open(folder(file))?.sync_all()
}

fn write(file: &Path, state: &State) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(file)?;
    let length = state.image().map(|piece| piece.len() as u64).sum();
    format::write(BufWriter::new(&file), length, state.image())?;
    file.sync_all()
}

/// Returns the path of a hidden file in the folder of `file`, named after `file`.
pub(super) fn beside(file: &Path, suffix: &str) -> io::Result<PathBuf> {
    let Some(name) = file.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(suffix);
    Ok(file.with_file_name(hidden))
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
