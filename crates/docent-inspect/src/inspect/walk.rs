use super::Inspector;
use super::reader::read;
use super::tree::Tree;
use docent_core::Error;
use std::time::SystemTime;

/// Reads until all places of the tree were inspected.
///
/// # Errors
/// Errors that are not about one node: `InvalidInput`, `Timeout`, `Closed`. The tree keeps what was read.
///
/// # Cancel safety
/// This function is cancel safe. The tree keeps what was read.
pub(crate) async fn complete(
    inspector: &Inspector,
    tree: &mut Tree,
    now: Option<SystemTime>,
) -> Result<(), Error> {
    loop {
        let missing = tree.advance(now);
        if missing.is_empty() {
            return Ok(());
        }
        read(inspector.client(), inspector.limits(), tree, missing).await?;
    }
}
