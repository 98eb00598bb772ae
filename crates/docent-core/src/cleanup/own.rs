//! Deletes of nodes whose names are ours alone, in whichever session there is.

use super::Left;
use crate::client::core::Core;
use crate::client::generation::SessionGeneration;
use crate::operation::exact::PAUSE;
use crate::operation::resolve::sync;
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use docent_proto::{Code, MultiResult, Request, Response, parent};
use std::sync::Arc;

pub(super) fn delete(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

pub(super) async fn delete_node(
    core: &Core,
    generation: Arc<SessionGeneration>,
    path: String,
    reply: Option<Pending>,
) -> Left {
    let owner = generation.number;
    delete_owned(core, owner, generation, path, reply).await
}

/// Deletes a node that the session of the generation `owner` made: only the end of that session is an end of
/// the node.
pub(super) async fn delete_owned(
    core: &Core,
    owner: u64,
    mut generation: Arc<SessionGeneration>,
    path: String,
    reply: Option<Pending>,
) -> Left {
    let mut reply = reply.unwrap_or_else(|| generation.session.submit(delete(&path), Lane::Cleanup));
    loop {
        let cause = match reply.await {
            Outcome::Reply(answer) => match answer.result {
                // The name is ours alone: a node that is not there was deleted by us, or went with its
                // session.
                Ok(_) | Err(Code::NO_NODE) => return Left::Gone,
                Err(Code::SESSION_EXPIRED) => Cause::Ended(SessionEnd::Expired),
                Err(code) if is_final(code) => {
                    tracing::error!(%path, generation = generation.number, %code, "a node of ours could not be deleted");
                    // The node goes with the session that made it: the end of a later one would not help.
                    if core.config.end_session_on_refused_delete && generation.number == owner {
                        generation.session.abandon();
                    }
                    return Left::Refused(code);
                }
                Err(_) => Cause::QueueFull,
            },
            Outcome::Unknown(Cause::LinkLost) if planted!(FailedDeleteForgotten) => return Left::Gone,
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => cause,
        };
        match after(core, owner, &generation, cause).await {
            Some(next) => generation = next,
            None if core.closing.is_cancelled() => return Left::Closed,
            None => return Left::Gone,
        }
        reply = generation.session.submit(delete(&path), Lane::Cleanup);
    }
}

/// Finds nodes of a create whose reply was lost, by the id in their names, and deletes them. A create that
/// was not found may be applied as long as its session lives: it is looked for again and again.
pub(super) async fn undo_create(
    core: &Core,
    mut generation: Arc<SessionGeneration>,
    prefix: String,
    reply: Option<Pending>,
) {
    let owner = generation.number;
    if let Some(reply) = reply {
        match reply.await {
            Outcome::Reply(answer) => {
                let created = match answer.result {
                    Ok(Response::Created { path, .. }) => Some(path),
                    Ok(Response::Multi(results)) => results.into_iter().find_map(|result| match result {
                        MultiResult::Created { path, .. } => Some(path),
                        _ => None,
                    }),
                    _ => None,
                };
                if let Some(path) = created {
                    delete_node(core, generation, path, None).await;
                }
                return;
            }
            Outcome::NotSent(_) => return,
            Outcome::Unknown(cause) => match after(core, owner, &generation, cause).await {
                Some(next) => generation = next,
                None => return,
            },
        }
    }
    let folder = parent(&prefix).unwrap_or("/");
    loop {
        match generation_find(&generation, folder, &prefix).await {
            Ok(paths) => {
                // In the session that sent it the create may be applied later (decision 11). A node of an
                // older session that comes late goes with that session.
                if paths.is_empty() && generation.number == owner && !planted!(LostCreateForgotten) {
                    return generation.lost_creates.add(&generation, folder, &prefix);
                }
                for path in paths {
                    let _ = delete_owned(core, owner, Arc::clone(&generation), path, None).await;
                }
                return;
            }
            // A folder too large to list is looked at again, less and less often.
            Err(Cause::TooLarge { .. }) if generation.number == owner => {
                return generation.lost_creates.add(&generation, folder, &prefix);
            }
            Err(cause) => match after(core, owner, &generation, cause).await {
                Some(next) => generation = next,
                None => return,
            },
        }
    }
}

/// The children of `folder` whose path begins with `prefix`, after the server has caught up with its leader.
/// An empty result proves only that the create was not applied yet.
pub(crate) async fn generation_find(
    generation: &SessionGeneration,
    folder: &str,
    prefix: &str,
) -> Result<Vec<String>, Cause> {
    let mut paths = children(generation, folder).await?;
    paths.retain(|path| path.starts_with(prefix));
    Ok(paths)
}

/// The paths of the children of `folder`, after the server has caught up with its leader.
pub(super) async fn children(generation: &SessionGeneration, folder: &str) -> Result<Vec<String>, Cause> {
    loop {
        let sync = generation.session.submit(sync(folder), Lane::Cleanup);
        let request = Request::GetChildren2 { path: folder.to_owned(), watch: false };
        let list = generation.session.submit(request, Lane::Cleanup);
        let (sync, list) = (sync.await, list.await);
        match (sync, list) {
            (Outcome::Reply(sync), Outcome::Reply(list)) => match (sync.result, list.result) {
                (Ok(_), Ok(Response::Children { names, .. })) => {
                    let folder = if folder == "/" { "" } else { folder };
                    return Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect());
                }
                (Ok(_), Err(Code::NO_NODE)) => return Ok(Vec::new()),
                (_, Err(Code::SESSION_EXPIRED)) => return Err(Cause::Ended(SessionEnd::Expired)),
                (_, Err(code)) if is_final(code) => {
                    tracing::error!(%folder, %code, "a node of ours could not be looked for");
                    return Ok(Vec::new());
                }
                (sync, list) => {
                    tracing::debug!(%folder, ?sync, ?list, "could not look for a node of ours");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            (_, Outcome::NotSent(Cause::Ended(end)) | Outcome::Unknown(Cause::Ended(end))) => {
                return Err(Cause::Ended(end));
            }
            // The link was lost between the two: together they prove nothing.
            (_, Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost))
            | (Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost), _) => {}
            (_, Outcome::Unknown(cause @ Cause::TooLarge { .. })) => return Err(cause),
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// SessionGeneration in which to go on with a node of the generation `owner` after a request in `generation`
/// failed for `cause`; `None` when nothing is left to do.
async fn after(
    core: &Core,
    owner: u64,
    generation: &Arc<SessionGeneration>,
    cause: Cause,
) -> Option<Arc<SessionGeneration>> {
    match cause {
        Cause::Ended(SessionEnd::Closed) => None,
        // The servers ended the session that owned the node: it went with it. The end of a later one says
        // nothing.
        Cause::Ended(SessionEnd::Expired) if generation.number == owner => None,
        // The servers may keep the session, and its nodes, for a while.
        Cause::Ended(_) => core.next_generation(generation.number).await.ok(),
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
