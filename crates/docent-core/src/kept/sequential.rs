//! One-time creation of sequential nodes that belong to no session.

use crate::client::{Client, PARENT_ROUNDS, TransactionResult};
use crate::error::{Error, ErrorKind, if_exists};
use crate::node::{CreateMode, NodePath};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};

/// Maximum number of concurrent reads.
const SIDE_BY_SIDE: usize = 32;

/// Creates the node and returns its path. The node is created exactly once, even if the reply is lost: it is
/// then found by the transaction that created it, which is that of the marker.
pub(super) async fn create(
    client: &Client,
    path: &str,
    data: &Bytes,
    mode: CreateMode,
) -> Result<String, Error> {
    let mut missing_parents = 0;
    loop {
        let create = client.transaction().create(path, data.clone(), mode);
        let committed = match create.commit_marked().await {
            Ok(committed) => committed,
            Err(error) if error.kind() == ErrorKind::NoNode && missing_parents < PARENT_ROUNDS => {
                missing_parents += 1;
                client.ensure_parent(&NodePath::new("create", format!("{path}0"))?).await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some([TransactionResult::Created(created)]) = committed.results.as_deref() {
            return Ok(created.path.clone());
        }
        if let Some(path) = find(client, path, committed.marker.mzxid).await? {
            return Ok(path);
        }
        // Another client deleted the new node immediately.
    }
}

/// Finds the node whose path begins with `prefix` and that the transaction `czxid` created.
async fn find(client: &Client, prefix: &str, czxid: i64) -> Result<Option<String>, Error> {
    let Some((parent, name)) = prefix.rsplit_once('/') else { return Ok(None) };
    let folder = if parent.is_empty() { "/" } else { parent };
    client.sync(folder).await?;
    let Some(children) = if_exists(client.children(folder).await)? else { return Ok(None) };
    let paths = children.names.into_iter().filter(|child| child.starts_with(name));
    let reads = paths.map(|child| async move {
        let path = format!("{parent}/{child}");
        let stat = client.exists(&path).await?;
        Ok::<_, Error>(stat.filter(|stat| stat.czxid == czxid).map(|_| path))
    });
    let mut reads = stream::iter(reads).buffer_unordered(SIDE_BY_SIDE);
    while let Some(found) = reads.next().await {
        if let Some(path) = found? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
