//! Undoing of exact writes that nobody waits for any more.

use super::by_czxid::delete_by_czxid;
use super::by_name::children;
use super::{CleanupContext, Ended, ExactWrite, Host, OwnedNode, PAUSE};
use crate::session::{Cause, lookup};
use crate::time::deadline;
use docent_proto::{MultiResult, parent};
use std::sync::Arc;
use std::time::Duration;

/// Longest pause between looks for a node whose name is not known, where they fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Ephemeral nodes that an exact write makes.
#[derive(Debug)]
pub(crate) enum Made {
    /// Nodes at these full paths.
    At(Vec<String>),
    /// One node whose full path is this and a number.
    Numbered(String),
}

/// Waits until the outcome of `write` is certain, and deletes the nodes that it made.
pub(super) async fn undo_exact(
    host: &dyn Host,
    context: Arc<CleanupContext>,
    mut write: ExactWrite,
    made: Made,
) {
    // Without an answer or a fence before the session ended, its nodes went with the session.
    let Ended::Applied(results, stat) = write.ended(deadline(Duration::MAX)).await else { return };
    let paths = match made {
        Made::At(paths) => paths,
        Made::Numbered(prefix) => match results.and_then(|results| results.into_iter().next()) {
            Some(MultiResult::Created { path, .. }) => vec![path],
            _ => return context.cleanup.undo_numbered(&context, prefix, stat.mzxid),
        },
    };
    for path in paths {
        // The marker was set in the transaction that made the nodes: by its number each is told from others
        // at the path (decision 8).
        let node = OwnedNode::by_czxid(Arc::clone(&context), path, stat.mzxid);
        let _ = delete_by_czxid(host.setup(), &node, None).await;
    }
}

/// Deletes the node that the transaction `czxid` made, whose path begins with `prefix`.
pub(super) async fn undo_numbered(host: &dyn Host, context: Arc<CleanupContext>, prefix: String, czxid: i64) {
    let mut pause = PAUSE;
    loop {
        match numbered(&context, &prefix, czxid).await {
            Ok(None) | Err(Cause::Ended(_)) => return,
            Ok(Some(path)) => {
                let node = OwnedNode::by_czxid(Arc::clone(&context), path, czxid);
                let _ = delete_by_czxid(host.setup(), &node, None).await;
                return;
            }
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Finds the node that the transaction `czxid` made, among the children whose paths begin with `prefix`.
///
/// # Errors
/// When it could not be looked for.
pub(crate) async fn numbered(
    context: &CleanupContext,
    prefix: &str,
    czxid: i64,
) -> Result<Option<String>, Cause> {
    let paths = children(context, parent(prefix).unwrap_or("/")).await?;
    for path in paths.into_iter().filter(|path| path.starts_with(prefix)) {
        if lookup::stat(context, &path).await?.is_some_and(|stat| stat.czxid == czxid) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
