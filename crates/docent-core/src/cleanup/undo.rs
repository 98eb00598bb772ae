//! Undoing of exact writes that nobody waits for any more.

use super::by_claim::delete_claim;
use super::by_czxid::delete_by_czxid;
use super::by_name::children;
use super::{Ended, ExactWrite, NewClaim, OwnedNode, PAUSE};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, lookup};
use crate::time::deadline;
use docent_proto::{MultiResult, parent};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// Longest pause between looks for a node whose name is not known, where they fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A transaction that made no node.
const UNKNOWN: i64 = 0;

/// Ephemeral nodes that an exact write makes.
#[derive(Debug)]
pub(crate) enum Made {
    /// A node at this full path.
    At(String),
    /// One node whose full path is this and a number.
    Numbered(String),
    /// Claims.
    Claims(Vec<NewClaim>),
}

/// Waits until the outcome of `write` is certain, and deletes the nodes that it made.
pub(super) async fn undo_exact(
    client: &Shared,
    generation: Arc<SessionGeneration>,
    mut write: ExactWrite,
    made: Made,
) {
    let (results, stat) = match write.ended(deadline(Duration::MAX)).await {
        Ended::Applied(results, stat) => (results, stat),
        // Without an answer or a fence before the session ended, its nodes went with the session.
        Ended::Unknown(Cause::Ended(_)) => return,
        // Somebody deleted the marker, so that nothing tells whether the write was applied.
        Ended::Unknown(_) => return undo_without_marker(client, generation, made).await,
        _ => return,
    };
    // The marker was set in the transaction that made the nodes: by its number each is told from others at
    // the path (decision 8).
    match made {
        Made::At(path) => delete_by_czxid(client, &generation, &path, stat.mzxid).await,
        Made::Numbered(prefix) => match results.and_then(|results| results.into_iter().next()) {
            Some(MultiResult::Created { path, .. }) => {
                delete_by_czxid(client, &generation, &path, stat.mzxid).await;
            }
            _ => generation.cleanup.undo_numbered(&generation, prefix, stat.mzxid),
        },
        Made::Claims(claims) => {
            let claims =
                claims.into_iter().map(|claim| OwnedNode::claim(Arc::clone(&generation), claim, stat.mzxid));
            let delete = |claim| async move { delete_claim(client, &claim, None).await };
            join_all(claims.map(delete)).await;
        }
    }
}

/// Deletes the claims that a write may have made. Only those with a proof can be told from others.
async fn undo_without_marker(client: &Shared, generation: Arc<SessionGeneration>, made: Made) {
    let Made::Claims(claims) = made else { return };
    let claims = claims.into_iter().filter(|claim| claim.handed_out);
    let claims = claims.map(|claim| OwnedNode::claim(Arc::clone(&generation), claim, UNKNOWN));
    join_all(claims.map(|claim| async move { delete_claim(client, &claim, None).await })).await;
}

/// Deletes the node that the transaction `czxid` made, whose path begins with `prefix`.
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

/// Finds the node that the transaction `czxid` made, among the children whose paths begin with `prefix`.
///
/// # Errors
/// When it could not be looked for.
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
