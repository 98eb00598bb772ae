//! Standard input, read beside the runtime, so that signals and sessions go on.

use crate::exit::Failure;
use std::io;
use tokio::io::{AsyncReadExt, stdin};

/// All of standard input.
///
/// # Errors
/// `Other` when it cannot be read.
///
/// # Cancel safety
/// This function is *not* cancel safe: what was read is lost.
pub(crate) async fn all() -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    stdin().read_to_end(&mut all).await.map_err(|error| unreadable(&error))?;
    Ok(all)
}

/// Standard input cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> Failure {
    Failure::other(format!("cannot read standard input: {error}"))
}
