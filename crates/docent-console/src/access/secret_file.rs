use super::error::AccessError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a file in bytes.
const LARGEST: u64 = 64 << 10;

/// Reads a file of secrets.
///
/// # Errors
/// `Mode` if other users have permissions on the file, `Read` if it cannot be read, is not UTF-8 or is larger
/// than 64 KiB.
pub(super) fn read(path: &Path) -> Result<String, AccessError> {
    let unreadable = |error| AccessError::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    // The mode of the open file, because the path could lead to another file by now.
    check_mode(path, &file)?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
    match text.len() as u64 > LARGEST {
        true => Err(unreadable(io::Error::other("larger than 64 KiB"))),
        false => Ok(text),
    }
}

#[cfg(unix)]
fn check_mode(path: &Path, file: &File) -> Result<(), AccessError> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().map_err(|error| AccessError::Read { path: path.to_owned(), error })?;
    let mode = metadata.mode() & 0o7777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(AccessError::Mode { path: path.to_owned(), mode }),
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &File) -> Result<(), AccessError> {
    Ok(())
}
