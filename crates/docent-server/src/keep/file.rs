use super::error::{KeepError, KeepFault};
use super::format;
use crate::config::Config;
use crate::state::{Origin, State};
use bytes::Bytes;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Access for its owner alone: the file holds the passwords of sessions.
const MODE: u32 = 0o600;

/// File that keeps the state of a server.
#[derive(Debug, Clone)]
pub(crate) struct Keep(PathBuf);

impl Keep {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// The state in the file; `None` when there is no file.
    pub(crate) fn load(&self, config: Config, origin: Origin, now: i64) -> Result<Option<State>, KeepError> {
        let Some(bytes) = self.read().map_err(|fault| self.error(fault))? else { return Ok(None) };
        let image = format::read(&bytes).map_err(|fault| self.error(fault))?;
        let state = State::from_image(image, config, origin, now);
        state.map(Some).map_err(|bad| self.error(KeepFault::Content(bad.0)))
    }

    fn read(&self) -> Result<Option<Bytes>, KeepFault> {
        match fs::metadata(&self.0) {
            Ok(found) if !found.is_file() => Err(KeepFault::NotAFile),
            Ok(_) => fs::read(&self.0).map(|bytes| Some(bytes.into())).map_err(KeepFault::Read),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KeepFault::Read(error)),
        }
    }

    /// Replaces the file by one with this state, as a whole or not at all.
    pub(crate) fn store(&self, state: &State) -> Result<(), KeepError> {
        let file = fs::canonicalize(&self.0).unwrap_or_else(|_| self.0.clone());
        let written = write_beside(&file, state);
        written.map_err(|error| self.error(KeepFault::Write(error)))
    }

    /// Error of this file.
    pub(crate) fn error(&self, fault: KeepFault) -> KeepError {
        KeepError::new(&self.0, fault)
    }
}

/// Writes a file of its own, and puts it in the place of `file` once it is on the disk.
fn write_beside(file: &Path, state: &State) -> io::Result<()> {
    let beside = beside(file)?;
    // One may be left of a server that was killed just then.
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

/// The name that `file` is written under first.
fn beside(file: &Path) -> io::Result<PathBuf> {
    let Some(name) = file.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".new");
    Ok(file.with_file_name(hidden))
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
