//! Finds out the outcome of a write whose reply was lost.
//!
//! While a session lives, each of its unanswered writes may be applied at any later time. This holds even if
//! the session was attached to another server that had caught up with its leader, and the write was not
//! applied then. Absence therefore proves nothing, and a write whose outcome must be certain is an exact
//! write (decision 11).

use super::context::read_synced;
use super::{Cause, Reply, SessionContext, Watch};
use bytes::Bytes;
use docent_proto::{Code, Request, Response, Stat};

/// Result of asking the servers about a write.
#[derive(Debug)]
pub(crate) enum Resolution {
    /// The write was not applied yet, and may be sent again: only one of the two can be applied.
    Repeatable,
    /// The write was not applied, and would be refused now.
    Refused(Code),
    /// Nothing is proven.
    Unknown,
}

/// Finds out the outcome of `request`, which the session sent when the newest transaction it had seen was
/// `seen`. Only a write that names the expected version can be repeated.
///
/// # Errors
/// The cause, if the session ended before the outcome was found out.
pub(crate) async fn resolve(
    context: &SessionContext,
    request: &Request,
    seen: i64,
) -> Result<Resolution, Cause> {
    match request {
        Request::SetData { path, data, version } if *version >= 0 => {
            resolve_set(context, path, data.as_ref(), *version, seen).await
        }
        // Applied late or twice, the write could undo a change that another client has made since.
        _ => Ok(Resolution::Unknown),
    }
}

async fn resolve_set(
    context: &SessionContext,
    path: &str,
    data: Option<&Bytes>,
    expected: i32,
    seen: i64,
) -> Result<Resolution, Cause> {
    let Some((found, stat)) = read(context, path).await? else { return Ok(Resolution::Unknown) };
    // A re-created node has version 0 like its predecessor, so its version says nothing about the write. If
    // the node has the next version and other data, another client set them, and the write is refused
    // permanently.
    let same_node = stat.czxid <= seen;
    Ok(if same_node && stat.version == expected {
        Resolution::Repeatable
    } else if same_node && stat.version == expected + 1 && found.as_ref() != data {
        Resolution::Refused(Code::BAD_VERSION)
    } else {
        Resolution::Unknown
    })
}

/// Returns the stat of a node as the leader knew it after the link was restored, or `None` if the node does
/// not exist. Needs no permission.
pub(crate) async fn stat(context: &SessionContext, path: &str) -> Result<Option<Stat>, Cause> {
    let request = Request::Exists { path: path.to_owned(), watch: false };
    Ok(match synced(context, path, request).await? {
        Some(Response::Stat(stat)) => Some(stat),
        _ => None,
    })
}

/// A node as it was read, with a watch that reports its next change.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) stat: Stat,
    /// Number of links that were lost before the read.
    losses: u64,
    watch: Option<Box<Watch>>,
}

impl Watched {
    /// What a write depends on that relies on the node being as it was read.
    pub(crate) fn since(&self) -> (u64, Option<&Watch>) {
        (self.losses, self.watch.as_deref())
    }
}

/// Does the same as [`stat`], and watches the node.
pub(crate) async fn watched(context: &SessionContext, path: &str) -> Result<Option<Watched>, Cause> {
    let request = Request::Exists { path: path.to_owned(), watch: true };
    let losses = context.losses();
    let Reply { result, watch, .. } = read_synced(context, path, &request).await?;
    Ok(match found(result)? {
        Some(Response::Stat(stat)) => Some(Watched { stat, losses, watch }),
        _ => None,
    })
}

/// Returns a node as the leader knew it after the link was restored, or `None` if the node does not exist.
pub(crate) async fn read(
    context: &SessionContext,
    path: &str,
) -> Result<Option<(Option<Bytes>, Stat)>, Cause> {
    let request = Request::GetData { path: path.to_owned(), watch: false };
    Ok(match synced(context, path, request).await? {
        Some(Response::Data { data, stat }) => Some((data, stat)),
        _ => None,
    })
}

/// Returns the reply to a read after a `sync` on the same link, or `None` if the node does not exist.
async fn synced(context: &SessionContext, path: &str, read: Request) -> Result<Option<Response>, Cause> {
    found(read_synced(context, path, &read).await?.result)
}

fn found(result: Result<Response, Code>) -> Result<Option<Response>, Cause> {
    match result {
        Ok(response) => Ok(Some(response)),
        Err(Code::NO_NODE) => Ok(None),
        // Without permission READ, nothing can be found out.
        Err(_) => Err(Cause::Deadline),
    }
}
