//! Deletes of nodes with unique names, in whichever session is current.

use super::{DeleteOutcome, PAUSE};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::context::{before_retry, read_synced, send_until_answered};
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use docent_proto::{Code, MultiResult, Request, Response, Stat, parent};
use futures_util::future::join_all;
use std::sync::Arc;

pub(super) fn delete_request(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

/// Deletes a node that the session of the generation `owner` created. Only the end of that session also ends
/// the node.
pub(super) async fn delete_owned(
    client: &Shared,
    owner: u64,
    mut generation: Arc<SessionGeneration>,
    path: String,
    reply: Option<Pending>,
) -> DeleteOutcome {
    let mut reply = reply.unwrap_or_else(|| generation.session.submit(delete_request(&path), Lane::Cleanup));
    loop {
        let cause = match reply.await.answer() {
            Ok(answer) => match answer.result {
                // The name is unique: if the node does not exist, this client or the end of its session
                // deleted it.
                Ok(_) | Err(Code::NO_NODE) => return DeleteOutcome::Deleted,
                Err(code) if is_final(code) => {
                    refused(client, owner, &generation, &path, code);
                    return DeleteOutcome::Refused(code);
                }
                Err(_) => Cause::QueueFull,
            },
            Err(Cause::LinkLost) if planted!(FailedDeleteForgotten) => return DeleteOutcome::Deleted,
            Err(cause) => cause,
        };
        match generation_after(client, owner, &generation, cause).await {
            Some(next) => generation = next,
            None if client.closing.is_cancelled() => return DeleteOutcome::Closed,
            None => return DeleteOutcome::Deleted,
        }
        reply = generation.session.submit(delete_request(&path), Lane::Cleanup);
    }
}

fn refused(client: &Shared, owner: u64, generation: &SessionGeneration, path: &str, code: Code) {
    // Event: The servers refuse to delete a node that this client created, such as a lock's. The node remains
    // until its session ends. With `end_session_on_refused_delete` the client ends the session now.
    // Action: Give the client DELETE permission on the node's parent.
    tracing::error!(target: "docent::cleanup", client = %client.label, %path, generation = generation.number, %code, "failed to delete a node of this client; the node remains until its session ends");
    // The node is deleted with the session that created it: ending a later session would not help.
    if client.config.end_session_on_refused_delete && generation.number == owner {
        generation.session.abandon();
    }
}

/// Deletes a node that was found, and that the session of the generation `owner` created. The delete applies
/// only to the version that was seen; another node at the path is left alone.
async fn delete_found(
    client: &Shared,
    owner: u64,
    mut generation: Arc<SessionGeneration>,
    path: String,
    mut seen: Stat,
) {
    loop {
        let delete = Request::Delete { path: path.clone(), version: seen.version };
        let cause = match generation.session.submit(delete, Lane::Cleanup).await.answer() {
            Ok(answer) => match answer.result {
                Ok(_) | Err(Code::NO_NODE) => return,
                Err(code) if is_final(code) => return refused(client, owner, &generation, &path, code),
                Err(Code::BAD_VERSION) => Cause::LinkLost,
                Err(_) => Cause::QueueFull,
            },
            Err(cause) => cause,
        };
        let mut cause = Some(cause);
        while let Some(reason) = cause.take() {
            match generation_after(client, owner, &generation, reason).await {
                Some(next) => generation = next,
                None => return,
            }
            match stat(&generation, &path).await {
                Ok(Some(now)) if now.czxid == seen.czxid => seen = now,
                Ok(_) => return,
                Err(reason) => cause = Some(reason),
            }
        }
    }
}

/// Deletes these nodes like [`delete_found`], all concurrently.
pub(super) async fn delete_all_found(
    client: &Shared,
    owner: u64,
    generation: &Arc<SessionGeneration>,
    found: Vec<(String, Stat)>,
) {
    let delete = |(path, stat)| delete_found(client, owner, Arc::clone(generation), path, stat);
    join_all(found.into_iter().map(delete)).await;
}

/// Finds the nodes of a create whose reply was lost, by the id in their names, and deletes them. If no node
/// is found, the create may still be applied as long as its session lives, so the search is repeated.
pub(super) async fn undo_create(
    client: &Shared,
    mut generation: Arc<SessionGeneration>,
    prefix: String,
    reply: Option<Pending>,
) {
    let (owner, session_id) = (generation.number, generation.session.id());
    if let Some(reply) = reply {
        match reply.await {
            Outcome::Reply(answer) => {
                let created = match answer.result {
                    Ok(Response::Created { path, .. }) => vec![path],
                    Ok(Response::Multi(results)) => results.into_iter().filter_map(created).collect(),
                    _ => Vec::new(),
                };
                let delete = |path| delete_owned(client, owner, Arc::clone(&generation), path, None);
                join_all(created.into_iter().map(delete)).await;
                return;
            }
            Outcome::NotSent(_) => return,
            Outcome::Unknown(cause) => match generation_after(client, owner, &generation, cause).await {
                Some(next) => generation = next,
                None => return,
            },
        }
    }
    let folder = parent(&prefix).unwrap_or("/");
    loop {
        match find(&generation, session_id, folder, &prefix).await {
            Ok(found) => {
                // In the session that sent it, the create may still be applied later (decision 11). A node of
                // an older session that appears late is deleted with that session.
                if found.is_empty() && generation.number == owner && !planted!(LostCreateForgotten) {
                    return generation.lost_creates.add(&generation, folder, &prefix);
                }
                return delete_all_found(client, owner, &generation, found).await;
            }
            // A folder that is too large to list is checked again, at growing intervals.
            Err(Cause::TooLarge { .. }) if generation.number == owner => {
                return generation.lost_creates.add(&generation, folder, &prefix);
            }
            Err(cause) => match generation_after(client, owner, &generation, cause).await {
                Some(next) => generation = next,
                None => return,
            },
        }
    }
}

fn created(result: MultiResult) -> Option<String> {
    match result {
        MultiResult::Created { path, .. } => Some(path),
        _ => None,
    }
}

/// Lists the children of `folder` whose path begins with `prefix` and which the session `owner` created,
/// after the server has caught up with its leader. An empty result proves only that the create was not
/// applied yet.
pub(crate) async fn find(
    generation: &SessionGeneration,
    owner: i64,
    folder: &str,
    prefix: &str,
) -> Result<Vec<(String, Stat)>, Cause> {
    let mut paths = children(generation, folder).await?;
    paths.retain(|path| path.starts_with(prefix));
    owned(generation, owner, paths).await
}

/// Returns those of `paths` that the session `owner` created, with their current stats. A name alone does not
/// show the owner: a copy of the process or of its virtual machine generates the same names.
pub(super) async fn owned(
    generation: &SessionGeneration,
    owner: i64,
    paths: Vec<String>,
) -> Result<Vec<(String, Stat)>, Cause> {
    let stats = join_all(paths.iter().map(|path| stat(generation, path))).await;
    let found = paths.into_iter().zip(stats).filter_map(|(path, stat)| match stat {
        Ok(stat) => stat.filter(|stat| is_owned_by(owner, stat)).map(|stat| Ok((path, stat))),
        Err(cause) => Some(Err(cause)),
    });
    found.collect()
}

fn is_owned_by(owner: i64, stat: &Stat) -> bool {
    if planted!(IdsOfTheProcess) {
        return true;
    }
    planted!(NoOwnerCheck) || stat.ephemeral_owner == owner
}

/// Reads the stat of a node that a listing of the same session contained; `None` if the node no longer
/// exists.
async fn stat(generation: &SessionGeneration, path: &str) -> Result<Option<Stat>, Cause> {
    loop {
        let request = || Request::Exists { path: path.to_owned(), watch: false };
        match send_until_answered(generation, Lane::Cleanup, request).await?.result {
            Ok(Response::Stat(stat)) => return Ok(Some(stat)),
            Ok(_) | Err(Code::NO_NODE) => return Ok(None),
            Err(code) if is_final(code) => {
                // Event: A node that may come from a lost create cannot be read. The client leaves the node
                // alone; if it does belong to this client, it remains until the session ends.
                // Action: Give the client permission to read the node's path.
                tracing::error!(target: "docent::cleanup", client = %generation.client, %path, %code, "cannot read the owner of a node that a lost create may have left; leaving the node alone");
                return Ok(None);
            }
            // Any other code says nothing about the node.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Lists the paths of the children of `folder`, after the server has caught up with its leader.
pub(crate) async fn children(generation: &SessionGeneration, folder: &str) -> Result<Vec<String>, Cause> {
    let list = Request::GetChildren2 { path: folder.to_owned(), watch: false };
    loop {
        match read_synced(generation, folder, &list).await.map(|reply| reply.result) {
            Ok(Ok(Response::Children { names, .. })) => {
                let folder = if folder == "/" { "" } else { folder };
                return Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect());
            }
            Ok(Err(Code::NO_NODE)) => return Ok(Vec::new()),
            Ok(Err(code)) if is_final(code) => {
                // Event: A folder in which a lost create may have left a node cannot be listed. Such a node
                // remains until its session ends.
                // Action: Give the client READ permission on the folder.
                tracing::error!(target: "docent::cleanup", client = %generation.client, %folder, %code, "cannot list a folder in which a lost create may have left a node; such a node remains until its session ends");
                return Ok(Vec::new());
            }
            Ok(answer) => {
                // Event: A folder in which a lost create may have left a node cannot be listed now. The
                // client retries after a pause.
                tracing::debug!(target: "docent::cleanup", client = %generation.client, %folder, ?answer, "cannot list a folder in which a lost create may have left a node; retrying");
                tokio::time::sleep(PAUSE).await;
            }
            Err(cause) => before_retry(cause).await?,
        }
    }
}

/// Returns the session in which to continue with a node of the session `owner`, after a request in
/// `generation` failed for `cause`; `None` if nothing is left to do.
pub(super) async fn generation_after(
    client: &Shared,
    owner: u64,
    generation: &Arc<SessionGeneration>,
    cause: Cause,
) -> Option<Arc<SessionGeneration>> {
    match cause {
        Cause::Ended(SessionEnd::Closed) => None,
        Cause::Ended(SessionEnd::Expired) if generation.number == owner && planted!(ExpiredIsGone) => None,
        // Whatever ended the session, the servers may keep it and its nodes for a while (decision 25).
        Cause::Ended(_) => client.next_generation(generation.number).await.ok(),
        Cause::LinkLost => Some(Arc::clone(generation)),
        Cause::Deadline | Cause::QueueFull | Cause::TooLarge { .. } | Cause::TooManyEphemerals { .. } => {
            tokio::time::sleep(PAUSE).await;
            Some(Arc::clone(generation))
        }
    }
}

/// Returns true for a refusal that retries cannot change.
pub(super) fn is_final(code: Code) -> bool {
    matches!(code, Code::NO_AUTH | Code::NOT_EMPTY | Code::BAD_ARGUMENTS)
}
