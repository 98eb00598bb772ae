//! Input: standard input, read beside the runtime, so that signals and sessions go on, and files.

use crate::exit::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tokio::io::{AsyncReadExt, stdin};

/// Most bytes of a value or an item: no request has room for more.
pub(crate) const LONGEST: usize = 1024 * 1024;

/// One byte more than that, by which too much is found out.
const LIMIT: u64 = LONGEST as u64 + 1;

/// All of standard input.
///
/// # Errors
/// `Other` when it cannot be read, `BadData` for more than fits into a request.
///
/// # Cancel safety
/// This function is *not* cancel safe: what was read is lost.
pub(crate) async fn all() -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    stdin().take(LIMIT).read_to_end(&mut all).await.map_err(|error| unreadable(&error))?;
    fitting(all, "standard input")
}

/// All of a file.
///
/// # Errors
/// `Usage` when it cannot be read, `BadData` for more than fits into a request.
pub(crate) fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LIMIT).read_to_end(&mut all));
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    fitting(all, &path.display().to_string())
}

/// Standard input cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> Failure {
    Failure::other(format!("cannot read standard input: {error}"))
}

/// `name` is longer than what fits into a request.
pub(crate) fn too_long(name: &str) -> Failure {
    Failure::bad_data(format!("{name} has more than {LONGEST} bytes, for which no request has room"))
}

fn fitting(all: Vec<u8>, name: &str) -> Result<Vec<u8>, Failure> {
    if all.len() > LONGEST { Err(too_long(name)) } else { Ok(all) }
}
