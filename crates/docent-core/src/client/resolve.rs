//! What became of a write whose reply was lost.
//!
//! Only the same session, re-attached and caught up with the leader, can tell: what it sent on an earlier link is applied by
//! then or never will be. Where others could have made the same change, nothing is proven.

use crate::epoch::Epoch;
use crate::session::{Cause, Lane, Outcome};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, Request, Response, Stat};

/// What a look at the servers says of a write.
#[derive(Debug)]
pub(crate) enum Resolution {
    /// It was applied, with this result.
    Applied(Response),
    /// It was not applied and never will be: it may be sent again.
    NotApplied,
    /// It was not applied, and would be refused now.
    Refused(Code),
    /// Nothing is proven.
    Unknown,
}

/// Finds out what became of `request`, which was sent in `epoch` when the newest transaction seen was `seen`.
///
/// # Errors
/// When the session ended before that could be found out.
pub(crate) async fn resolve(epoch: &Epoch, request: &Request, seen: i64) -> Result<Resolution, Cause> {
    match request {
        Request::Create(create) if create.flags == CreateMode::Ephemeral.flags() => {
            resolve_ephemeral(epoch, create, seen).await
        }
        Request::Delete { path, .. } => resolve_delete(epoch, path, seen).await,
        Request::SetData { path, data, version } if *version >= 0 => {
            resolve_set(epoch, path, data.as_ref(), *version, seen).await
        }
        // Anybody could have made the same change, and undone it.
        _ => Ok(Resolution::Unknown),
    }
}

/// An ephemeral node is ours if it belongs to this session, is newer than what we had seen before and has our data: another call
/// of this client may have been made at the same time.
async fn resolve_ephemeral(epoch: &Epoch, create: &Create, seen: i64) -> Result<Resolution, Cause> {
    Ok(match read(epoch, &create.path).await? {
        None => Resolution::NotApplied,
        Some((data, stat))
            if stat.ephemeral_owner == epoch.session.id()
                && stat.czxid > seen
                && data.clone().unwrap_or_default() == create.data.clone().unwrap_or_default() =>
        {
            Resolution::Applied(Response::Created { path: create.path.clone(), stat: Some(stat) })
        }
        Some(_) => Resolution::Refused(Code::NODE_EXISTS),
    })
}

/// A node that was there before the delete and still is was not deleted.
async fn resolve_delete(epoch: &Epoch, path: &str, seen: i64) -> Result<Resolution, Cause> {
    Ok(match read(epoch, path).await? {
        Some((_, stat)) if stat.czxid <= seen => Resolution::NotApplied,
        // It was deleted, by us or by somebody else, and perhaps created again.
        _ => Resolution::Unknown,
    })
}

async fn resolve_set(
    epoch: &Epoch,
    path: &str,
    data: Option<&Bytes>,
    expected: i32,
    seen: i64,
) -> Result<Resolution, Cause> {
    let Some((found, stat)) = read(epoch, path).await? else { return Ok(Resolution::Unknown) };
    let same_node = stat.czxid <= seen;
    Ok(if same_node && stat.version == expected {
        Resolution::NotApplied
    } else if same_node && stat.version == expected + 1 && found.as_ref() != data {
        Resolution::Refused(Code::BAD_VERSION)
    } else {
        Resolution::Unknown
    })
}

/// The stat of a node as the leader knew it after the link came back; `None` when there is none. Needs no permission.
pub(crate) async fn stat(epoch: &Epoch, path: &str) -> Result<Option<Stat>, Cause> {
    let request = Request::Exists { path: path.to_owned(), watch: false };
    Ok(match synced(epoch, path, request).await? {
        Some(Response::Stat(stat)) => Some(stat),
        _ => None,
    })
}

/// A node as the leader knew it after the link came back; `None` when there is none.
pub(crate) async fn read(epoch: &Epoch, path: &str) -> Result<Option<(Option<Bytes>, Stat)>, Cause> {
    let request = Request::GetData { path: path.to_owned(), watch: false };
    Ok(match synced(epoch, path, request).await? {
        Some(Response::Data { data, stat }) => Some((data, stat)),
        _ => None,
    })
}

/// Lets the server catch up with its leader: a write that was sent on an earlier link is seen by then, or never happens.
pub(crate) fn sync(path: &str) -> Request {
    if planted!(NoSyncBeforeLookup) {
        return Request::Exists { path: "/".to_owned(), watch: false };
    }
    Request::Sync { path: path.to_owned() }
}

/// The answer to a read after a `sync` on the same link; `None` when there is no node.
async fn synced(epoch: &Epoch, path: &str, read: Request) -> Result<Option<Response>, Cause> {
    loop {
        let sync = epoch.session.submit(sync(path), Lane::Call);
        let read = epoch.session.submit(read.clone(), Lane::Call);
        match (sync.await, read.await) {
            (Outcome::Reply(sync), Outcome::Reply(read)) => match (sync.result, read.result) {
                (Ok(_), Ok(response)) => return Ok(Some(response)),
                (Ok(_), Err(Code::NO_NODE)) => return Ok(None),
                // Without the right to read nothing can be found out.
                _ => return Err(Cause::Deadline),
            },
            (_, Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost)) => {}
            (Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost), _) => {}
            (_, Outcome::NotSent(cause) | Outcome::Unknown(cause)) => return Err(cause),
            (Outcome::NotSent(cause) | Outcome::Unknown(cause), _) => return Err(cause),
        }
    }
}
