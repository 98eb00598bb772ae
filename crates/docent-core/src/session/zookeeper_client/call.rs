//! Docent's requests as calls of the crate, and the crate's results as responses.

use super::convert::{Failure, any, from_acl, from_stat, options, to_acls, valid};
use docent_proto::{Code, Create, CreateMode, EventKind, MultiOp, MultiResult, Request, Response, Watches};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use std::panic::AssertUnwindSafe;
use zookeeper_client as zk;

/// Answer of a server, with the watches that it set.
pub(super) type Answer = (Result<Response, Code>, Vec<WatchResult>);

/// Watch that a request has set.
pub(super) enum WatchResult {
    /// The watch will report the next change.
    Set(zk::OneshotWatcher),
    /// The watch has reported a change.
    Fired(EventKind),
}

/// A request handed to the crate.
pub(super) type Call = BoxFuture<'static, Result<Answer, Failure>>;

/// Prepares a call. The crate enqueues the request when the future is first polled.
pub(super) fn call(client: zk::Client, request: Request) -> Call {
    let call = async move {
        match answer(&client, request).await {
            Err(Failure::Answered(code)) => Ok((Err(code), Vec::new())),
            result => result,
        }
    };
    // The crate panics on some replies that are too short.
    AssertUnwindSafe(call).catch_unwind().map(|result| result.unwrap_or(Err(Failure::Lost))).boxed()
}

async fn answer(client: &zk::Client, request: Request) -> Result<Answer, Failure> {
    let (response, watcher) = match request {
        Request::Exists { path, watch } => return exists(client, &path, watch).await,
        Request::SetWatches(watches) => return set_watches(client, watches).await,
        Request::GetData { path, watch: false } => {
            let (data, stat) = client.get_data(&path).await?;
            (Response::Data { data: Some(data.into()), stat: from_stat(&stat) }, None)
        }
        Request::GetData { path, watch: true } => {
            let (data, stat, watcher) = client.get_and_watch_data(&path).await?;
            (Response::Data { data: Some(data.into()), stat: from_stat(&stat) }, Some(watcher))
        }
        Request::GetChildren { path, watch: false } => {
            let names = client.list_children(&path).await?;
            (Response::Children { names, stat: None }, None)
        }
        Request::GetChildren { path, watch: true } => {
            let (names, watcher) = client.list_and_watch_children(&path).await?;
            (Response::Children { names, stat: None }, Some(watcher))
        }
        Request::GetChildren2 { path, watch: false } => {
            let (names, stat) = client.get_children(&path).await?;
            (Response::Children { names, stat: Some(from_stat(&stat)) }, None)
        }
        Request::GetChildren2 { path, watch: true } => {
            let (names, stat, watcher) = client.get_and_watch_children(&path).await?;
            (Response::Children { names, stat: Some(from_stat(&stat)) }, Some(watcher))
        }
        other => (unwatched(client, other).await?, None),
    };
    Ok((Ok(response), watcher.map(WatchResult::Set).into_iter().collect()))
}

async fn exists(client: &zk::Client, path: &str, watch: bool) -> Result<Answer, Failure> {
    let (stat, watcher) = if watch {
        let (stat, watcher) = client.check_and_watch_stat(path).await?;
        (stat, Some(watcher))
    } else {
        (client.check_stat(path).await?, None)
    };
    let result = stat.map(|stat| Response::Stat(from_stat(&stat))).ok_or(Code::NO_NODE);
    Ok((result, watcher.map(WatchResult::Set).into_iter().collect()))
}

/// Sets watches on the data of several nodes by a separate read of each, because the crate has no such
/// request.
async fn set_watches(client: &zk::Client, watches: Watches) -> Result<Answer, Failure> {
    let since = watches.relative_zxid;
    let checks = watches.data.iter().map(|path| async move {
        Ok::<_, Failure>(match client.check_and_watch_stat(path).await? {
            // Dropping the value removes the watch for the creation of a node.
            (None, _) => WatchResult::Fired(EventKind::Deleted),
            (Some(stat), _) if stat.mzxid > since => WatchResult::Fired(EventKind::DataChanged),
            (Some(_), watcher) => WatchResult::Set(watcher),
        })
    });
    Ok((Ok(Response::Empty), try_join_all(checks).await?))
}

async fn unwatched(client: &zk::Client, request: Request) -> Result<Response, Failure> {
    Ok(match request {
        Request::Create(create) => return create_node(client, &create).await,
        Request::Delete { path, version } => {
            client.delete(&path, any(version)).await?;
            Response::Empty
        }
        Request::SetData { path, data, version } => {
            let stat = client.set_data(&path, &data.unwrap_or_default(), any(version)).await?;
            Response::Stat(from_stat(&stat))
        }
        Request::GetAcl { path } => {
            let (acl, stat) = client.get_acl(&path).await?;
            Response::Acl { acl: acl.iter().map(from_acl).collect(), stat: from_stat(&stat) }
        }
        Request::SetAcl { path, acl, version } => {
            let stat = client.set_acl(&path, &to_acls(&acl), any(version)).await?;
            Response::Stat(from_stat(&stat))
        }
        Request::Sync { path } => {
            client.sync(&path).await?;
            Response::Synced { path }
        }
        Request::Multi(ops) => return multi(client, &ops).await,
        Request::MultiRead(ops) => return multi_read(client, &ops).await,
        Request::Auth { scheme, credentials } => {
            client.auth(&scheme, &credentials).await?;
            Response::Empty
        }
        // Requests that a session sends on its own are handled by the crate.
        Request::Exists { .. }
        | Request::GetData { .. }
        | Request::GetChildren { .. }
        | Request::GetChildren2 { .. }
        | Request::Ping
        | Request::Check { .. }
        | Request::Reconfig { .. }
        | Request::CheckWatches { .. }
        | Request::RemoveWatches { .. }
        | Request::AddWatch { .. }
        | Request::SetWatches(_)
        | Request::SetWatches2 { .. }
        | Request::Sasl { .. }
        | Request::GetEphemerals { .. }
        | Request::GetAllChildrenNumber { .. }
        | Request::WhoAmI
        | Request::CloseSession => return Err(Failure::Answered(Code::UNIMPLEMENTED)),
    })
}

async fn create_node(client: &zk::Client, create: &Create) -> Result<Response, Failure> {
    let acls = to_acls(&create.acl);
    let data = create.data.as_deref().unwrap_or_default();
    let (stat, sequence) = client.create(&create.path, data, &options(create, &acls)?).await?;
    let path = match CreateMode::from_flags(create.flags) {
        Some(mode) if mode.is_sequential() => format!("{}{sequence}", create.path),
        _ => create.path.clone(),
    };
    Ok(Response::Created { path, stat: valid(&stat) })
}

async fn multi(client: &zk::Client, ops: &[MultiOp]) -> Result<Response, Failure> {
    let commit = {
        let mut writer = client.new_multi_writer();
        for op in ops {
            match op {
                MultiOp::Create(create) => {
                    let (acls, data) = (to_acls(&create.acl), create.data.as_deref().unwrap_or_default());
                    writer.add_create(&create.path, data, &options(create, &acls)?)?;
                }
                MultiOp::Delete { path, version } => writer.add_delete(path, any(*version))?,
                MultiOp::SetData { path, data, version } => {
                    writer.add_set_data(path, data.as_deref().unwrap_or_default(), any(*version))?;
                }
                MultiOp::Check { path, version } => writer.add_check_version(path, *version)?,
                MultiOp::GetData { .. } | MultiOp::GetChildren { .. } => {
                    return Err(Failure::Answered(Code::BAD_ARGUMENTS));
                }
            }
        }
        writer.commit()
    };
    let results = match commit.await {
        Ok(results) => results.into_iter().map(multi_result).collect::<Result<_, _>>()?,
        Err(zk::MultiWriteError::RequestFailed { source }) => return Err(source.into()),
        Err(zk::MultiWriteError::OperationFailed { index, source }) => match source.into() {
            Failure::Answered(code) => failed_at(index, code, ops.len()),
            failure => return Err(failure),
        },
    };
    Ok(Response::Multi(results))
}

/// Returns the results that servers give for a multi whose operation at `index` failed.
fn failed_at(index: usize, code: Code, len: usize) -> Vec<MultiResult> {
    let codes = (0..len).map(|at| match at.cmp(&index) {
        std::cmp::Ordering::Less => Code::OK,
        std::cmp::Ordering::Equal => code,
        std::cmp::Ordering::Greater => Code::RUNTIME_INCONSISTENCY,
    });
    codes.map(MultiResult::Failed).collect()
}

fn multi_result(result: zk::MultiWriteResult) -> Result<MultiResult, Failure> {
    Ok(match result {
        zk::MultiWriteResult::Check => MultiResult::Checked,
        zk::MultiWriteResult::Delete => MultiResult::Deleted,
        zk::MultiWriteResult::Create { path, stat } => {
            MultiResult::Created { path, stat: valid(&stat).map(Box::new) }
        }
        zk::MultiWriteResult::SetData { stat } => MultiResult::Set(from_stat(&stat).into()),
        _ => return Err(Failure::Lost),
    })
}

async fn multi_read(client: &zk::Client, ops: &[MultiOp]) -> Result<Response, Failure> {
    let commit = {
        let mut reader = client.new_multi_reader();
        for op in ops {
            match op {
                MultiOp::GetData { path } => reader.add_get_data(path)?,
                MultiOp::GetChildren { path } => reader.add_get_children(path)?,
                MultiOp::Create(_)
                | MultiOp::Delete { .. }
                | MultiOp::SetData { .. }
                | MultiOp::Check { .. } => return Err(Failure::Answered(Code::BAD_ARGUMENTS)),
            }
        }
        reader.commit()
    };
    let results = commit.await?.into_iter().map(|result| match result {
        zk::MultiReadResult::Data { data, stat } => {
            Ok(MultiResult::Data { data: Some(data.into()), stat: from_stat(&stat).into() })
        }
        zk::MultiReadResult::Children { children } => Ok(MultiResult::Children(children)),
        zk::MultiReadResult::Error { err } => match err.into() {
            Failure::Answered(code) => Ok(MultiResult::Failed(code)),
            failure => Err(failure),
        },
        _ => Err(Failure::Lost),
    });
    Ok(Response::Multi(results.collect::<Result<_, _>>()?))
}

/// Returns the event of a one-shot watch, or `None` at the end of the session.
pub(super) async fn event(watcher: zk::OneshotWatcher) -> Option<EventKind> {
    // The crate panics if its task was dropped by a runtime that shuts down.
    let event = AssertUnwindSafe(watcher.changed()).catch_unwind().await.ok()?;
    match event.event_type {
        zk::EventType::NodeCreated => Some(EventKind::Created),
        zk::EventType::NodeDeleted => Some(EventKind::Deleted),
        zk::EventType::NodeDataChanged => Some(EventKind::DataChanged),
        zk::EventType::NodeChildrenChanged => Some(EventKind::ChildrenChanged),
        zk::EventType::Session => None,
    }
}

/// Returns the newest transaction that `response` mentions.
pub(super) fn newest_zxid(response: &Response) -> i64 {
    match response {
        Response::Created { stat: Some(stat), .. }
        | Response::Children { stat: Some(stat), .. }
        | Response::Stat(stat)
        | Response::Data { stat, .. } => stat.mzxid.max(stat.pzxid),
        _ => 0,
    }
}
