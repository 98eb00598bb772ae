//! Look at what a path is, before something of another kind is made there.

use crate::exit::{Failure, FailureKind};
use docent::inspect::{Inspector, Kind, QueueLayout, Recipe};
use docent::recipe::is_own_name;
use docent::{Client, ErrorKind};

/// Folders of Docent's queue: a path with nothing else below it needs no further look.
const QUEUE: [&str; 5] = ["items", "claims", "dead", "idle", "lock"];

/// Refuses a path that is no queue of Docent's: items would be put beside others, and not be seen.
///
/// # Errors
/// `Other` that names the kind; `NoPermission` when the path may not be read; `Unreachable`.
pub(super) async fn ensure_queue(client: &Client, path: &str) -> Result<(), Failure> {
    match found(client, path, &QUEUE).await? {
        None | Some(Recipe::Plain(_) | Recipe::Absent) => Ok(()),
        Some(Recipe::Queue(queue)) => match queue.layout {
            QueueLayout::Docent => Ok(()),
            _ => Err(Failure::other(format!(
                "{path} is a queue of another layout than Docent's, which this command does not work on: \
                 nothing was done"
            ))),
        },
        Some(other) => Err(mixed(path, other.kind(), Kind::Queue)),
    }
}

/// Refuses a path that others contend at: a value there would hide them.
///
/// # Errors
/// As [`ensure_queue`].
pub(super) async fn ensure_value(client: &Client, path: &str) -> Result<(), Failure> {
    match found(client, path, &[]).await? {
        Some(
            other @ (Recipe::Mutex(_)
            | Recipe::ReadWriteLock(_)
            | Recipe::Semaphore(_)
            | Recipe::Election(_)
            | Recipe::Queue(_)),
        ) => Err(mixed(path, other.kind(), Kind::Config)),
        _ => Ok(()),
    }
}

/// What a path with children beside the `expected` is; `None` where there are no others.
async fn found(client: &Client, path: &str, expected: &[&str]) -> Result<Option<Recipe>, Failure> {
    let children = match client.children(path).await {
        Ok(children) => children.names,
        Err(error) if error.kind() == ErrorKind::NoNode => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if children.iter().all(|name| is_own_name(name) || expected.contains(&name.as_str())) {
        return Ok(None);
    }
    Ok(Some(Inspector::new(client).path(path).await?.recipe))
}

/// The same result for a verb that writes alone: it may be allowed to write where it may not read.
pub(super) fn or_unread(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(failure) if failure.kind() == FailureKind::NoPermission => Ok(()),
        result => result,
    }
}

fn mixed(path: &str, found: Kind, wanted: Kind) -> Failure {
    Failure::other(format!("{path} is of the kind {found}, and not {wanted}: nothing was done"))
}
