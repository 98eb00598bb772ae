//! Deletes of nodes whose names are ours alone, in whichever session there is.

use super::{DeleteOutcome, PAUSE};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::ask::{ask, ask_synced, before_repeat};
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use docent_proto::{Code, MultiResult, Request, Response, Stat, parent};
use futures_util::future::join_all;
use std::sync::Arc;

pub(super) fn delete_request(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

pub(super) async fn delete_node(
    client: &Shared,
    generation: Arc<SessionGeneration>,
    path: String,
    reply: Option<Pending>,
) -> DeleteOutcome {
    let owner = generation.number;
    delete_owned(client, owner, generation, path, reply).await
}

/// Deletes a node that the session of the generation `owner` made: only the end of that session is an end of
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
                // The name is ours alone: a node that is not there was deleted by us, or went with its
                // session.
                Ok(_) | Err(Code::NO_NODE) => return DeleteOutcome::Gone,
                Err(code) if is_final(code) => {
                    refused(client, owner, &generation, &path, code);
                    return DeleteOutcome::Refused(code);
                }
                Err(_) => Cause::QueueFull,
            },
            Err(Cause::LinkLost) if planted!(FailedDeleteForgotten) => return DeleteOutcome::Gone,
            Err(cause) => cause,
        };
        match after(client, owner, &generation, cause).await {
            Some(next) => generation = next,
            None if client.closing.is_cancelled() => return DeleteOutcome::Closed,
            None => return DeleteOutcome::Gone,
        }
        reply = generation.session.submit(delete_request(&path), Lane::Cleanup);
    }
}

fn refused(client: &Shared, owner: u64, generation: &SessionGeneration, path: &str, code: Code) {
    tracing::error!(%path, generation = generation.number, %code, "a node of ours could not be deleted");
    // The node goes with the session that made it: the end of a later one would not help.
    if client.config.end_session_on_refused_delete && generation.number == owner {
        generation.session.abandon();
    }
}

/// Deletes a node that was found, and that the session of the generation `owner` made. It is deleted as it
/// was seen: another node at its path is left alone.
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
            match after(client, owner, &generation, reason).await {
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

/// Deletes these nodes as [`delete_found`] does, all at the same time.
pub(super) async fn delete_all_found(
    client: &Shared,
    owner: u64,
    generation: &Arc<SessionGeneration>,
    found: Vec<(String, Stat)>,
) {
    let delete = |(path, stat)| delete_found(client, owner, Arc::clone(generation), path, stat);
    join_all(found.into_iter().map(delete)).await;
}

/// Finds nodes of a create whose reply was lost, by the id in their names, and deletes them. A create that
/// was not found may be applied as long as its session lives: it is looked for again and again.
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
            Outcome::Unknown(cause) => match after(client, owner, &generation, cause).await {
                Some(next) => generation = next,
                None => return,
            },
        }
    }
    let folder = parent(&prefix).unwrap_or("/");
    loop {
        match find(&generation, session_id, folder, &prefix).await {
            Ok(found) => {
                // In the session that sent it the create may be applied later (decision 11). A node of an
                // older session that comes late goes with that session.
                if found.is_empty() && generation.number == owner && !planted!(LostCreateForgotten) {
                    return generation.lost_creates.add(&generation, folder, &prefix);
                }
                return delete_all_found(client, owner, &generation, found).await;
            }
            // A folder too large to list is looked at again, less and less often.
            Err(Cause::TooLarge { .. }) if generation.number == owner => {
                return generation.lost_creates.add(&generation, folder, &prefix);
            }
            Err(cause) => match after(client, owner, &generation, cause).await {
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

/// The children of `folder` whose path begins with `prefix` and which the session `owner` made, after the
/// server has caught up with its leader. An empty result proves only that the create was not applied yet.
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

/// Those of `paths` that the session `owner` made, each as it is now. A name alone does not show whose a node
/// is: what draws names may have been copied, with the memory of its process or of its machine.
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

/// The stat of a node, of which a listing of the same session told; `None` if it is not there any more.
async fn stat(generation: &SessionGeneration, path: &str) -> Result<Option<Stat>, Cause> {
    loop {
        let request = || Request::Exists { path: path.to_owned(), watch: false };
        match ask(generation, Lane::Cleanup, request).await?.result {
            Ok(Response::Stat(stat)) => return Ok(Some(stat)),
            Ok(_) | Err(Code::NO_NODE) => return Ok(None),
            Err(code) if is_final(code) => {
                tracing::error!(%path, %code, "a node that may be ours cannot be looked at; leaving it alone");
                return Ok(None);
            }
            // Any other code says nothing about the node.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The paths of the children of `folder`, after the server has caught up with its leader.
pub(crate) async fn children(generation: &SessionGeneration, folder: &str) -> Result<Vec<String>, Cause> {
    let list = Request::GetChildren2 { path: folder.to_owned(), watch: false };
    loop {
        match ask_synced(generation, folder, &list).await {
            Ok(Ok(Response::Children { names, .. })) => {
                let folder = if folder == "/" { "" } else { folder };
                return Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect());
            }
            Ok(Err(Code::NO_NODE)) => return Ok(Vec::new()),
            Ok(Err(code)) if is_final(code) => {
                tracing::error!(%folder, %code, "a node of ours could not be looked for");
                return Ok(Vec::new());
            }
            Ok(answer) => {
                tracing::debug!(%folder, ?answer, "could not look for a node of ours");
                tokio::time::sleep(PAUSE).await;
            }
            Err(cause) => before_repeat(cause).await?,
        }
    }
}

/// Session in which to go on with a node of the session `owner` after a request in `generation`
/// failed for `cause`; `None` when nothing is left to do.
pub(super) async fn after(
    client: &Shared,
    owner: u64,
    generation: &Arc<SessionGeneration>,
    cause: Cause,
) -> Option<Arc<SessionGeneration>> {
    match cause {
        Cause::Ended(SessionEnd::Closed) => None,
        Cause::Ended(SessionEnd::Expired) if generation.number == owner && planted!(ExpiredIsGone) => None,
        // The servers may keep the session, and its nodes, for a while, whatever the reason that it ended for
        // (decision 25).
        Cause::Ended(_) => client.next_generation(generation.number).await.ok(),
        Cause::LinkLost => Some(Arc::clone(generation)),
        Cause::Deadline | Cause::QueueFull | Cause::TooLarge { .. } | Cause::TooManyEphemerals { .. } => {
            tokio::time::sleep(PAUSE).await;
            Some(Arc::clone(generation))
        }
    }
}

/// True for a refusal that will not change by itself.
pub(super) fn is_final(code: Code) -> bool {
    matches!(code, Code::NO_AUTH | Code::NOT_EMPTY | Code::BAD_ARGUMENTS)
}
