//! Input from files and standard input, which is read off the runtime's thread, so that signals and sessions
//! continue.

use crate::exit::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tokio::io::{AsyncReadExt, stdin};

/// Maximum size of a value or an item, in bytes: no request has room for more.
pub(crate) const LONGEST: usize = 1024 * 1024;

/// One byte more than the maximum, to detect longer input.
const LIMIT: u64 = LONGEST as u64 + 1;

/// Reads all of standard input.
///
/// # Errors
/// `Other` if it cannot be read, `BadData` if it does not fit into a request.
///
/// # Cancel safety
/// This function is *not* cancel safe: input that was already read is lost.
pub(crate) async fn all() -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    stdin().take(LIMIT).read_to_end(&mut all).await.map_err(|error| unreadable(&error))?;
    fitting(all, "standard input")
}

/// Reads all of a file.
///
/// # Errors
/// `Usage` if it cannot be read, `BadData` if it does not fit into a request.
pub(crate) fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LIMIT).read_to_end(&mut all));
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    fitting(all, &path.display().to_string())
}

/// Returns the failure of reading standard input.
pub(crate) fn unreadable(error: &io::Error) -> Failure {
    Failure::other(format!("cannot read standard input: {error}"))
}

/// Returns the failure for input that does not fit into a request.
pub(crate) fn too_long(name: &str) -> Failure {
    Failure::bad_data(format!("{name} is longer than {LONGEST} bytes, the maximum for one request"))
}

fn fitting(all: Vec<u8>, name: &str) -> Result<Vec<u8>, Failure> {
    if all.len() > LONGEST { Err(too_long(name)) } else { Ok(all) }
}
