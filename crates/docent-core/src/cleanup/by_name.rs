//! Deletes of nodes whose names are ours alone, in whichever session there is.

use super::{CleanupContext, DeleteOutcome, Host, PAUSE};
use crate::session::ask::{ask, ask_synced, before_repeat};
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use docent_proto::{Code, MultiResult, Request, Response, Stat, parent};
use futures_util::future::join_all;
use std::sync::Arc;

pub(super) fn delete_request(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

pub(super) async fn delete_node(
    host: &dyn Host,
    context: Arc<CleanupContext>,
    path: String,
    reply: Option<Pending>,
) -> DeleteOutcome {
    let owner = context.number;
    delete_owned(host, owner, context, path, reply).await
}

/// Deletes a node that the session of the context `owner` made: only the end of that session is an end of
/// the node.
pub(super) async fn delete_owned(
    host: &dyn Host,
    owner: u64,
    mut context: Arc<CleanupContext>,
    path: String,
    reply: Option<Pending>,
) -> DeleteOutcome {
    let mut reply = reply.unwrap_or_else(|| context.session.submit(delete_request(&path), Lane::Cleanup));
    loop {
        let cause = match reply.await.answer() {
            Ok(answer) => match answer.result {
                // The name is ours alone: a node that is not there was deleted by us, or went with its
                // session.
                Ok(_) | Err(Code::NO_NODE) => return DeleteOutcome::Gone,
                Err(code) if is_final(code) => {
                    refused(host, owner, &context, &path, code);
                    return DeleteOutcome::Refused(code);
                }
                Err(_) => Cause::QueueFull,
            },
            Err(Cause::LinkLost) if planted!(FailedDeleteForgotten) => return DeleteOutcome::Gone,
            Err(cause) => cause,
        };
        match after(host, owner, &context, cause).await {
            Some(next) => context = next,
            None if host.setup().closing.is_cancelled() => return DeleteOutcome::Closed,
            None => return DeleteOutcome::Gone,
        }
        reply = context.session.submit(delete_request(&path), Lane::Cleanup);
    }
}

fn refused(host: &dyn Host, owner: u64, context: &CleanupContext, path: &str, code: Code) {
    tracing::error!(%path, generation = context.number, %code, "a node of ours could not be deleted");
    // The node goes with the session that made it: the end of a later one would not help.
    if host.setup().config.end_session_on_refused_delete && context.number == owner {
        context.session.abandon();
    }
}

/// Deletes a node that was found, and that the session of the context `owner` made. It is deleted as it was
/// seen: another node at its path is left alone.
async fn delete_found(
    host: &dyn Host,
    owner: u64,
    mut context: Arc<CleanupContext>,
    path: String,
    mut seen: Stat,
) {
    loop {
        let delete = Request::Delete { path: path.clone(), version: seen.version };
        let cause = match context.session.submit(delete, Lane::Cleanup).await.answer() {
            Ok(answer) => match answer.result {
                Ok(_) | Err(Code::NO_NODE) => return,
                Err(code) if is_final(code) => return refused(host, owner, &context, &path, code),
                Err(Code::BAD_VERSION) => Cause::LinkLost,
                Err(_) => Cause::QueueFull,
            },
            Err(cause) => cause,
        };
        let mut cause = Some(cause);
        while let Some(reason) = cause.take() {
            match after(host, owner, &context, reason).await {
                Some(next) => context = next,
                None => return,
            }
            match stat(&context, &path).await {
                Ok(Some(now)) if now.czxid == seen.czxid => seen = now,
                Ok(_) => return,
                Err(reason) => cause = Some(reason),
            }
        }
    }
}

/// Deletes these nodes as [`delete_found`] does, all at the same time.
pub(super) async fn delete_all_found(
    host: &dyn Host,
    owner: u64,
    context: &Arc<CleanupContext>,
    found: Vec<(String, Stat)>,
) {
    let delete = |(path, stat)| delete_found(host, owner, Arc::clone(context), path, stat);
    join_all(found.into_iter().map(delete)).await;
}

/// Finds nodes of a create whose reply was lost, by the id in their names, and deletes them. A create that
/// was not found may be applied as long as its session lives: it is looked for again and again.
pub(super) async fn undo_create(
    host: &dyn Host,
    mut context: Arc<CleanupContext>,
    prefix: String,
    reply: Option<Pending>,
) {
    let (owner, session_id) = (context.number, context.session.id());
    if let Some(reply) = reply {
        match reply.await {
            Outcome::Reply(answer) => {
                let created = match answer.result {
                    Ok(Response::Created { path, .. }) => vec![path],
                    Ok(Response::Multi(results)) => results.into_iter().filter_map(created).collect(),
                    _ => Vec::new(),
                };
                let delete = |path| delete_owned(host, owner, Arc::clone(&context), path, None);
                join_all(created.into_iter().map(delete)).await;
                return;
            }
            Outcome::NotSent(_) => return,
            Outcome::Unknown(cause) => match after(host, owner, &context, cause).await {
                Some(next) => context = next,
                None => return,
            },
        }
    }
    let folder = parent(&prefix).unwrap_or("/");
    loop {
        match find(&context, session_id, folder, &prefix).await {
            Ok(found) => {
                // In the session that sent it the create may be applied later (decision 11). A node of an
                // older session that comes late goes with that session.
                if found.is_empty() && context.number == owner && !planted!(LostCreateForgotten) {
                    return context.lost_creates.add(&context, folder, &prefix);
                }
                return delete_all_found(host, owner, &context, found).await;
            }
            // A folder too large to list is looked at again, less and less often.
            Err(Cause::TooLarge { .. }) if context.number == owner => {
                return context.lost_creates.add(&context, folder, &prefix);
            }
            Err(cause) => match after(host, owner, &context, cause).await {
                Some(next) => context = next,
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
    context: &CleanupContext,
    owner: i64,
    folder: &str,
    prefix: &str,
) -> Result<Vec<(String, Stat)>, Cause> {
    let mut paths = children(context, folder).await?;
    paths.retain(|path| path.starts_with(prefix));
    owned(context, owner, paths).await
}

/// Those of `paths` that the session `owner` made, each as it is now. A name alone does not show whose a node
/// is: what draws names may have been copied, with the memory of its process or of its machine.
pub(super) async fn owned(
    context: &CleanupContext,
    owner: i64,
    paths: Vec<String>,
) -> Result<Vec<(String, Stat)>, Cause> {
    let stats = join_all(paths.iter().map(|path| stat(context, path))).await;
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
async fn stat(context: &CleanupContext, path: &str) -> Result<Option<Stat>, Cause> {
    loop {
        let request = || Request::Exists { path: path.to_owned(), watch: false };
        match ask(context, Lane::Cleanup, request).await?.result {
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
pub(crate) async fn children(context: &CleanupContext, folder: &str) -> Result<Vec<String>, Cause> {
    let list = Request::GetChildren2 { path: folder.to_owned(), watch: false };
    loop {
        match ask_synced(context, folder, &list).await {
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

/// Session in which to go on with a node of the session `owner` after a request in `context`
/// failed for `cause`; `None` when nothing is left to do.
pub(super) async fn after(
    host: &dyn Host,
    owner: u64,
    context: &Arc<CleanupContext>,
    cause: Cause,
) -> Option<Arc<CleanupContext>> {
    match cause {
        Cause::Ended(SessionEnd::Closed) => None,
        Cause::Ended(SessionEnd::Expired) if context.number == owner && planted!(ExpiredIsGone) => None,
        // The servers may keep the session, and its nodes, for a while, whatever the reason that it ended for
        // (decision 25).
        Cause::Ended(_) => host.next_session(context.number).await,
        Cause::LinkLost => Some(Arc::clone(context)),
        Cause::Deadline | Cause::QueueFull | Cause::TooLarge { .. } | Cause::TooManyEphemerals { .. } => {
            tokio::time::sleep(PAUSE).await;
            Some(Arc::clone(context))
        }
    }
}

/// True for a refusal that will not change by itself.
pub(super) fn is_final(code: Code) -> bool {
    matches!(code, Code::NO_AUTH | Code::NOT_EMPTY | Code::BAD_ARGUMENTS)
}
