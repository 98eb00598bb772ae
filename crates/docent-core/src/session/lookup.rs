//! Look-ups of the outcome of a write whose reply was lost.
//!
//! While a session lives, each of its unanswered writes may be applied at any later time, also when it was
//! not applied yet as the same session was attached elsewhere and that server had caught up with its leader.
//! So absence proves nothing, and a write whose outcome must be certain is an exact one (decision 11).

use super::ask::ask_synced;
use super::{Cause, SessionContext};
use bytes::Bytes;
use docent_proto::{Code, Request, Response, Stat};

/// Finding of a look at the servers about a write.
#[derive(Debug)]
pub(crate) enum Resolution {
    /// It was not applied yet, and may be sent again: only one of the two can be applied.
    Repeatable,
    /// It was not applied, and would be refused now.
    Refused(Code),
    /// Nothing is proven.
    Unknown,
}

/// Finds out the outcome of `request`, which was sent in the session when the newest transaction seen was
/// `seen`. Only a write from a known version can be repeated.
///
/// # Errors
/// When the session ended before the outcome could be found out.
pub(crate) async fn resolve(
    context: &SessionContext,
    request: &Request,
    seen: i64,
) -> Result<Resolution, Cause> {
    match request {
        Request::SetData { path, data, version } if *version >= 0 => {
            resolve_set(context, path, data.as_ref(), *version, seen).await
        }
        // Applied late, or twice, it could undo a change that somebody made since.
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
    // A node that was made anew has version 0 as its predecessor had: its version says nothing about the
    // write. The next version with other data was set by somebody else, and refuses the write for good.
    let same_node = stat.czxid <= seen;
    Ok(if same_node && stat.version == expected {
        Resolution::Repeatable
    } else if same_node && stat.version == expected + 1 && found.as_ref() != data {
        Resolution::Refused(Code::BAD_VERSION)
    } else {
        Resolution::Unknown
    })
}

/// The stat of a node as the leader knew it after the link came back; `None` when there is none. Needs no
/// permission.
pub(crate) async fn stat(context: &SessionContext, path: &str) -> Result<Option<Stat>, Cause> {
    let request = Request::Exists { path: path.to_owned(), watch: false };
    Ok(match synced(context, path, request).await? {
        Some(Response::Stat(stat)) => Some(stat),
        _ => None,
    })
}

/// A node as the leader knew it after the link came back; `None` when there is none.
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

/// The answer to a read after a `sync` on the same link; `None` when there is no node.
async fn synced(context: &SessionContext, path: &str, read: Request) -> Result<Option<Response>, Cause> {
    match ask_synced(context, path, &read).await? {
        Ok(response) => Ok(Some(response)),
        Err(Code::NO_NODE) => Ok(None),
        // Without permission READ nothing can be found out.
        Err(_) => Err(Cause::Deadline),
    }
}
