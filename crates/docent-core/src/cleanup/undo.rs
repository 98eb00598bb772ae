//! Undoing of exact writes that no caller waits for any more.

use super::by_claim::delete_claim;
use super::by_czxid::delete_by_czxid;
use super::by_name::children;
use super::{ExactWrite, NewClaim, OwnedNode, PAUSE, WriteOutcome};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, lookup};
use crate::time::deadline;
use docent_proto::{MultiResult, parent};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// Maximum pause between failed searches for a node with an unknown name.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Stands for a transaction that created no node.
const UNKNOWN: i64 = 0;

/// Ephemeral nodes that an exact write creates.
#[derive(Debug)]
pub(crate) enum CreatedNodes {
    /// A node at this full path.
    At(String),
    /// One node whose full path is this prefix and a number.
    Numbered(String),
    /// Claims.
    Claims(Vec<NewClaim>),
}

/// Waits until the outcome of `write` is certain, and deletes the nodes that it created.
pub(super) async fn undo_exact(
    client: &Shared,
    generation: Arc<SessionGeneration>,
    mut write: ExactWrite,
    created: CreatedNodes,
) {
    let (results, stat) = match write.outcome(deadline(Duration::MAX)).await {
        WriteOutcome::Applied(results, stat) => (results, stat),
        // No answer or fence before the session ended: the nodes were deleted with the session.
        WriteOutcome::Unknown(Cause::Ended(_)) => return,
        // Another client deleted the marker, so nothing shows whether the write was applied.
        WriteOutcome::Unknown(_) => return undo_without_marker(client, generation, created).await,
        _ => return,
    };
    // The marker was set in the transaction that created the nodes. Its number distinguishes each of them
    // from other nodes at the path (decision 8).
    match created {
        CreatedNodes::At(path) => delete_by_czxid(client, &generation, &path, stat.mzxid).await,
        CreatedNodes::Numbered(prefix) => match results.and_then(|results| results.into_iter().next()) {
            Some(MultiResult::Created { path, .. }) => {
                delete_by_czxid(client, &generation, &path, stat.mzxid).await;
            }
            _ => generation.cleanup.undo_numbered(&generation, prefix, stat.mzxid),
        },
        CreatedNodes::Claims(claims) => {
            let claims =
                claims.into_iter().map(|claim| OwnedNode::claim(Arc::clone(&generation), claim, stat.mzxid));
            let delete = |claim| async move { delete_claim(client, &claim, None).await };
            join_all(claims.map(delete)).await;
        }
    }
}

/// Deletes the claims that a write may have created. Only claims with a proof can be distinguished from
/// others.
async fn undo_without_marker(client: &Shared, generation: Arc<SessionGeneration>, created: CreatedNodes) {
    let CreatedNodes::Claims(claims) = created else { return };
    let claims = claims.into_iter().filter(|claim| claim.handed_out);
    let claims = claims.map(|claim| OwnedNode::claim(Arc::clone(&generation), claim, UNKNOWN));
    join_all(claims.map(|claim| async move { delete_claim(client, &claim, None).await })).await;
}

/// Deletes the node that the transaction `czxid` created, whose path begins with `prefix`.
pub(super) async fn undo_numbered(
    client: &Shared,
    generation: Arc<SessionGeneration>,
    prefix: String,
    czxid: i64,
) {
    let mut pause = PAUSE;
    loop {
        match numbered(&generation, &prefix, czxid).await {
            Ok(None) | Err(Cause::Ended(_)) => return,
            Ok(Some(path)) => return delete_by_czxid(client, &generation, &path, czxid).await,
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Finds the node that the transaction `czxid` created, among the children whose paths begin with `prefix`.
///
/// # Errors
/// The cause for which the search failed.
pub(crate) async fn numbered(
    generation: &SessionGeneration,
    prefix: &str,
    czxid: i64,
) -> Result<Option<String>, Cause> {
    let paths = children(generation, parent(prefix).unwrap_or("/")).await?;
    for path in paths.into_iter().filter(|path| path.starts_with(prefix)) {
        if lookup::stat(generation, &path).await?.is_some_and(|stat| stat.czxid == czxid) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
