//! Check of the recipe at a path, before something of another kind is created there.

use crate::exit::{Failure, FailureKind};
use docent::Client;
use docent::inspect::{Inspector, Kind, QueueLayout, Recipe};
use docent::recipe::{if_exists, is_own_name};

/// Folders of Docent's queue: a path with only these below it needs no further check.
const QUEUE: [&str; 5] = ["items", "claims", "dead", "idle", "lock"];

/// Refuses a path that is not a queue of Docent's: items put beside other nodes would not be seen.
///
/// # Errors
/// `Other` that names the kind; `NoPermission` if the path may not be read; `Unreachable`.
pub(super) async fn ensure_queue(client: &Client, path: &str) -> Result<(), Failure> {
    match found(client, path, &QUEUE).await? {
        None | Some(Recipe::Plain(_) | Recipe::Absent) => Ok(()),
        Some(Recipe::Queue(queue)) => match queue.layout {
            QueueLayout::Docent => Ok(()),
            _ => Err(Failure::other(format!(
                "{path} is a queue with another layout than Docent's, which this command cannot use: \
                 nothing was done"
            ))),
        },
        Some(other) => Err(wrong_kind(path, other.kind(), Kind::Queue)),
    }
}

/// Refuses a path that is in use as a lock, election or queue: a value there would hide its nodes.
///
/// # Errors
/// Same as [`ensure_queue`].
pub(super) async fn ensure_value(client: &Client, path: &str) -> Result<(), Failure> {
    match found(client, path, &[]).await? {
        Some(
            other @ (Recipe::Mutex(_)
            | Recipe::ReadWriteLock(_)
            | Recipe::Semaphore(_)
            | Recipe::Election(_)
            | Recipe::Queue(_)),
        ) => Err(wrong_kind(path, other.kind(), Kind::Config)),
        _ => Ok(()),
    }
}

/// Returns the recipe of a path that has other children than `expected`, or `None` if it has none.
async fn found(client: &Client, path: &str, expected: &[&str]) -> Result<Option<Recipe>, Failure> {
    let Some(children) = if_exists(client.children(path).await)? else { return Ok(None) };
    if children.names.iter().all(|name| is_own_name(name) || expected.contains(&name.as_str())) {
        return Ok(None);
    }
    Ok(Some(Inspector::new(client).path(path).await?.recipe))
}

/// Returns true if the node at `path` has children, and only those of Docent's queue.
///
/// # Errors
/// `NoPermission`, `Unreachable`.
pub(super) async fn is_queue_folder(client: &Client, path: &str) -> Result<bool, Failure> {
    let Some(children) = if_exists(client.children(path).await)? else { return Ok(false) };
    let mut names = children.names.iter().filter(|name| !is_own_name(name)).peekable();
    Ok(names.peek().is_some() && names.all(|name| QUEUE.contains(&name.as_str())))
}

/// Ignores missing permission for a verb that only writes: it may be allowed to write but not to read.
pub(super) fn or_unread(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(failure) if failure.kind() == FailureKind::NoPermission => Ok(()),
        result => result,
    }
}

fn wrong_kind(path: &str, found: Kind, wanted: Kind) -> Failure {
    Failure::other(format!("{path} is of kind {found}, not {wanted}: nothing was done"))
}
