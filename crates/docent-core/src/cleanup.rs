//! Deletes that must happen: released tickets and creates whose future was dropped or whose reply was lost.
//!
//! `Drop` submits the delete in order with other calls and hands what is left to the one worker of the client. The worker
//! tries until the node is gone, or until the session that owned it is gone by the servers' word.

use crate::claim::ClaimNode;
use crate::client::resolve::{self, sync};
use crate::core::Core;
use crate::epoch::Epoch;
use crate::session::{Cause, Farewell, Lane, Outcome, Pending, SessionEnd};
use crate::telemetry;
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, parent};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Between attempts when a server answers that it will not do it now.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Takes deletes that must happen. Never blocks, also outside a runtime.
#[derive(Debug, Clone)]
pub(crate) struct Cleanup {
    jobs: mpsc::UnboundedSender<Job>,
}

/// A node that must go.
#[derive(Debug, Clone)]
pub(crate) enum Doomed {
    /// One whose name is ours alone, so that it can be deleted by its name in any session.
    Own { epoch: Arc<Epoch>, path: String },
    /// One whose name others may use once it is gone: only its own session may delete it.
    Claim(Arc<ClaimNode>),
}

#[derive(Debug)]
enum Job {
    /// Delete a node.
    Node { node: Doomed, reply: Pending, done: Option<oneshot::Sender<Left>> },
    /// Delete a node later, unless it is gone by then.
    Later { node: Doomed, delay: Duration },
    /// Find out what became of a create, and undo it.
    Create { epoch: Arc<Epoch>, prefix: String, reply: Option<Pending> },
    /// Find out what became of claims that were made together, and undo them. All have `id` for their data.
    Claims { epoch: Arc<Epoch>, paths: Vec<String>, id: Bytes, reply: Option<Pending> },
    /// End a session that was given up, once its guards are dropped: until then they may stop their work.
    Abandoned { epoch: Arc<Epoch>, farewell: Farewell },
    /// Tell when nothing is left to do.
    Drained(oneshot::Sender<()>),
}

impl Cleanup {
    pub(crate) fn new() -> (Self, CleanupWorker) {
        let (jobs, queue) = mpsc::unbounded_channel();
        (Self { jobs }, CleanupWorker { queue })
    }

    pub(crate) fn delete_later(&self, epoch: &Arc<Epoch>, path: String, delay: Duration) {
        self.send(Job::Later { node: Doomed::Own { epoch: Arc::clone(epoch), path }, delay });
    }

    /// As [`delete_later`](Self::delete_later), for the node of a claim.
    pub(crate) fn release_later(&self, node: &Arc<ClaimNode>, delay: Duration) {
        self.send(Job::Later { node: Doomed::Claim(Arc::clone(node)), delay });
    }

    /// Undoes claims once their outcome is known. `reply` is the outcome if it is still to come.
    pub(crate) fn undo_claims(
        &self,
        epoch: &Arc<Epoch>,
        paths: Vec<String>,
        id: Bytes,
        reply: Option<Pending>,
    ) {
        self.send(Job::Claims { epoch: Arc::clone(epoch), paths, id, reply });
    }

    /// Undoes a create of a node whose path begins with `prefix`, once its outcome is known. `reply` is the outcome if it
    /// is still to come; without it the create may or may not have been applied.
    pub(crate) fn undo_create(&self, epoch: &Arc<Epoch>, prefix: String, reply: Option<Pending>) {
        self.send(Job::Create { epoch: Arc::clone(epoch), prefix, reply });
    }

    /// Ends a session that was given up, so that its nodes do not stand for as long as the servers keep it.
    pub(crate) fn end_abandoned(&self, epoch: &Arc<Epoch>) {
        if let Some(farewell) = epoch.session.farewell() {
            self.send(Job::Abandoned { epoch: Arc::clone(epoch), farewell });
        }
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn drained(&self) {
        let (done, drained) = oneshot::channel();
        self.send(Job::Drained(done));
        // The worker ends only with the client: then nothing is left either.
        let _ = drained.await;
    }

    fn send(&self, job: Job) {
        // Without a worker the client is closed, and its sessions with it.
        let _ = self.jobs.send(job);
    }
}

/// The delete of a node on its way. Dropping it hands what is left to the worker.
#[derive(Debug)]
pub(crate) struct Leaving {
    node: Doomed,
    reply: Pending,
}

/// What became of a node that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It is gone.
    Gone,
    /// The servers refuse to delete it.
    Refused(Code),
    /// The client was closed; the node goes with its session.
    Closed,
    /// Not yet: the worker goes on.
    Timeout,
}

impl Leaving {
    /// Submits the delete of a node whose name is ours alone: it has its place in the order of calls now.
    pub(crate) fn new(epoch: Arc<Epoch>, path: String) -> Self {
        let reply = epoch.session.submit(delete(&path), Lane::Cleanup);
        Self { node: Doomed::Own { epoch, path }, reply }
    }

    /// Submits the delete of a claim's node.
    pub(crate) fn of_claim(node: Arc<ClaimNode>) -> Self {
        let reply = node.epoch.session.submit(delete_once(&node.path), Lane::Cleanup);
        Self { node: Doomed::Claim(node), reply }
    }

    /// Deletes a claim's node if it is still there: it may be gone already, and another claim in its place.
    pub(crate) fn of_claim_perhaps(node: Arc<ClaimNode>) -> Self {
        Self { node: Doomed::Claim(node), reply: Pending::ready(LOOK_FIRST) }
    }

    /// Waits until the node is gone, at most until `deadline`.
    pub(crate) async fn by(mut self, deadline: Instant) -> Left {
        let wait = async {
            match (&mut self.reply).await {
                Outcome::Reply(reply) if matches!(reply.refusal(), None | Some(Code::NO_NODE)) => {
                    Some(Left::Gone)
                }
                outcome => {
                    self.reply = Pending::ready(outcome);
                    None
                }
            }
        };
        match tokio::time::timeout_at(deadline, wait).await {
            Ok(Some(left)) => return left,
            Ok(None) => {}
            Err(_) => return Left::Timeout,
        }
        // It takes more than one attempt: that is the worker's business.
        let (done, left) = oneshot::channel();
        self.hand_over(Some(done));
        match tokio::time::timeout_at(deadline, left).await {
            Ok(Ok(left)) => left,
            Ok(Err(_)) => Left::Closed,
            Err(_) => Left::Timeout,
        }
    }

    fn hand_over(&mut self, done: Option<oneshot::Sender<Left>>) {
        if self.reply.is_open() {
            let reply = std::mem::replace(&mut self.reply, Pending::taken());
            let node = self.node.clone();
            self.node.epoch().cleanup.send(Job::Node { node, reply, done });
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}

pub(crate) struct CleanupWorker {
    queue: mpsc::UnboundedReceiver<Job>,
}

impl CleanupWorker {
    /// Runs until the client is closed.
    pub(crate) async fn run(mut self, core: Arc<Core>) {
        let mut open: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            telemetry::cleanups(open.len());
            if open.is_empty() {
                for drained in waiting.drain(..) {
                    let _ = drained.send(());
                }
            }
            let job = tokio::select! {
                biased;
                Some(()) = open.next() => continue,
                job = self.queue.recv() => job,
                () = core.finished.cancelled() => return,
            };
            let core = core.as_ref();
            match job {
                None => return,
                Some(Job::Drained(done)) => waiting.push(done),
                Some(Job::Node { node, reply, done }) => open.push(
                    async move {
                        let left = delete_doomed(core, node, Some(reply)).await;
                        if let Some(done) = done {
                            let _ = done.send(left);
                        }
                    }
                    .boxed(),
                ),
                Some(Job::Later { node, delay }) => open.push(
                    async move {
                        tokio::select! {
                            () = tokio::time::sleep(delay) => {}
                            () = core.closing.cancelled() => {}
                        }
                        if node.is_still_to_go() {
                            let _ = delete_doomed(core, node, None).await;
                        }
                    }
                    .boxed(),
                ),
                Some(Job::Claims { epoch, paths, id, reply }) => {
                    open.push(undo_claims(epoch, paths, id, reply).boxed());
                }
                Some(Job::Abandoned { epoch, farewell }) => open.push(
                    async move {
                        let say = async {
                            epoch.held.all_dropped().await;
                            // Nodes that the next session keeps, too, are replaced while this one lives: nobody sees them gone.
                            let replaced = core.kept.attempted(epoch.number + 1);
                            let _ = tokio::time::timeout(core.config.operation_timeout, replaced).await;
                            farewell.say(&core.ensemble).await;
                        };
                        tokio::select! {
                            () = say => {}
                            () = core.closing.cancelled() => {}
                        }
                    }
                    .boxed(),
                ),
                Some(Job::Create { epoch, prefix, reply }) => {
                    open.push(undo_create(core, epoch, prefix, reply).boxed());
                }
            }
        }
    }
}

/// Stands for a delete that may have been sent: whether the node is there is looked at before another.
const LOOK_FIRST: Outcome = Outcome::NotSent(Cause::LinkLost);

impl Doomed {
    fn epoch(&self) -> &Arc<Epoch> {
        match self {
            Self::Own { epoch, .. } => epoch,
            Self::Claim(node) => &node.epoch,
        }
    }

    /// False when somebody else sees to the node's end already.
    fn is_still_to_go(&self) -> bool {
        match self {
            // Deleting it twice does no harm.
            Self::Own { .. } => true,
            Self::Claim(node) => node.leave(),
        }
    }
}

async fn delete_doomed(core: &Core, node: Doomed, reply: Option<Pending>) -> Left {
    match node {
        Doomed::Own { epoch, path } => delete_node(core, epoch, path, reply).await,
        Doomed::Claim(node) => delete_claim(&node, reply).await,
    }
}

/// Deletes the node of a claim, in its own session: with that it would go anyway, and in another one the name may be that of a
/// claim of somebody else. For the same reason a delete whose reply was lost is sent again only if the node is still the same.
async fn delete_claim(node: &ClaimNode, reply: Option<Pending>) -> Left {
    let session = &node.epoch.session;
    let mut reply = reply.unwrap_or_else(|| session.submit(delete_once(&node.path), Lane::Cleanup));
    loop {
        match reply.await {
            Outcome::Reply(answer) => match answer.refusal() {
                None | Some(Code::NO_NODE | Code::SESSION_EXPIRED) => return Left::Gone,
                Some(code) if is_final(code) => {
                    tracing::error!(path = %node.path, epoch = node.epoch.number, %code, "a claim could not be deleted");
                    return Left::Refused(code);
                }
                Some(_) => tokio::time::sleep(PAUSE).await,
            },
            Outcome::NotSent(Cause::Ended(end)) | Outcome::Unknown(Cause::Ended(end)) => return ended(end),
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => {}
            Outcome::NotSent(_) | Outcome::Unknown(_) => tokio::time::sleep(PAUSE).await,
        }
        match resolve::stat(&node.epoch, &node.path).await {
            Ok(Some(stat)) if stat.czxid == node.czxid => {}
            Ok(_) => return Left::Gone,
            Err(Cause::Ended(end)) => return ended(end),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                reply = Pending::ready(LOOK_FIRST);
                continue;
            }
        }
        reply = session.submit(delete_once(&node.path), Lane::Cleanup);
    }
}

/// What becomes of a claim whose session has ended.
fn ended(end: SessionEnd) -> Left {
    match end {
        SessionEnd::Closed => Left::Closed,
        // It goes with its session, or went.
        _ => Left::Gone,
    }
}

/// Finds out whether claims were made, and deletes those that are ours.
async fn undo_claims(epoch: Arc<Epoch>, paths: Vec<String>, id: Bytes, reply: Option<Pending>) {
    if let Some(reply) = reply {
        match reply.await {
            Outcome::Reply(answer) if answer.refusal().is_some() => return,
            Outcome::NotSent(_) | Outcome::Unknown(Cause::Ended(_)) => return,
            _ => {}
        }
    }
    for path in paths {
        let found = loop {
            match resolve::read(&epoch, &path).await {
                Ok(found) => break found,
                Err(Cause::Ended(_)) => return,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        if let Some((Some(data), stat)) = found
            && data == id
        {
            let node = ClaimNode::new(Arc::clone(&epoch), path, stat.czxid);
            let _ = delete_claim(&node, None).await;
        }
    }
}

/// A delete in a multi: a session sends one that is alone again by itself when its reply was lost.
fn delete_once(path: &str) -> Request {
    Request::Multi(vec![MultiOp::Delete { path: path.to_owned(), version: -1 }])
}

fn delete(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

async fn delete_node(core: &Core, epoch: Arc<Epoch>, path: String, reply: Option<Pending>) -> Left {
    let owner = epoch.number;
    delete_owned(core, owner, epoch, path, reply).await
}

/// Deletes a node that a session of the epoch `owner` made: only the end of that session is an end of the node.
async fn delete_owned(
    core: &Core,
    owner: u64,
    mut epoch: Arc<Epoch>,
    path: String,
    reply: Option<Pending>,
) -> Left {
    let mut reply = reply.unwrap_or_else(|| epoch.session.submit(delete(&path), Lane::Cleanup));
    loop {
        let cause = match reply.await {
            Outcome::Reply(answer) => match answer.result {
                // The name is ours alone: a node that is not there was deleted by us, or went with its session.
                Ok(_) | Err(Code::NO_NODE) => return Left::Gone,
                Err(Code::SESSION_EXPIRED) => Cause::Ended(SessionEnd::Expired),
                Err(code) if is_final(code) => {
                    tracing::error!(%path, epoch = epoch.number, %code, "a node of ours could not be deleted");
                    // It goes with the session that made it, and no other.
                    if core.config.end_session_on_refused_delete && epoch.number == owner {
                        epoch.session.abandon();
                    }
                    return Left::Refused(code);
                }
                Err(_) => Cause::QueueFull,
            },
            Outcome::Unknown(Cause::LinkLost) if planted!(FailedDeleteForgotten) => return Left::Gone,
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => cause,
        };
        match after(core, owner, &epoch, cause).await {
            Some(next) => epoch = next,
            None if core.closing.is_cancelled() => return Left::Closed,
            None => return Left::Gone,
        }
        reply = epoch.session.submit(delete(&path), Lane::Cleanup);
    }
}

/// Finds nodes of a create whose reply was lost, by the id in their names, and deletes them.
async fn undo_create(core: &Core, mut epoch: Arc<Epoch>, prefix: String, reply: Option<Pending>) {
    let owner = epoch.number;
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
                    delete_node(core, epoch, path, None).await;
                }
                return;
            }
            Outcome::NotSent(_) => return,
            Outcome::Unknown(cause) => match after(core, owner, &epoch, cause).await {
                Some(next) => epoch = next,
                None => return,
            },
        }
    }
    let folder = parent(&prefix).unwrap_or("/");
    loop {
        match epoch_find(&epoch, folder, &prefix).await {
            Ok(paths) => {
                for path in paths {
                    let _ = delete_owned(core, owner, Arc::clone(&epoch), path, None).await;
                }
                return;
            }
            Err(cause) => match after(core, owner, &epoch, cause).await {
                Some(next) => epoch = next,
                None => return,
            },
        }
    }
}

/// The children of `folder` whose path begins with `prefix`, after the server has caught up with its leader: a create that
/// was sent on an earlier link of the session is seen then, or never happens.
pub(crate) async fn epoch_find(epoch: &Epoch, folder: &str, prefix: &str) -> Result<Vec<String>, Cause> {
    loop {
        let sync = epoch.session.submit(sync(folder), Lane::Cleanup);
        let request = Request::GetChildren2 { path: folder.to_owned(), watch: false };
        let list = epoch.session.submit(request, Lane::Cleanup);
        let (sync, list) = (sync.await, list.await);
        match (sync, list) {
            (Outcome::Reply(sync), Outcome::Reply(list)) => match (sync.result, list.result) {
                (Ok(_), Ok(Response::Children { names, .. })) => {
                    let folder = if folder == "/" { "" } else { folder };
                    let paths = names.into_iter().map(|name| format!("{folder}/{name}"));
                    return Ok(paths.filter(|path| path.starts_with(prefix)).collect());
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
            _ => {}
        }
    }
}

/// True for a refusal that will not change by itself.
fn is_final(code: Code) -> bool {
    matches!(code, Code::NO_AUTH | Code::NOT_EMPTY | Code::BAD_ARGUMENTS)
}

/// Where to go on with a node of the epoch `owner` after a request in `epoch` failed for `cause`; `None` when there is nothing
/// to do any more.
async fn after(core: &Core, owner: u64, epoch: &Arc<Epoch>, cause: Cause) -> Option<Arc<Epoch>> {
    match cause {
        Cause::Ended(SessionEnd::Closed) => None,
        // The servers ended the session that owned the node: it went with it. The end of a later one says nothing.
        Cause::Ended(SessionEnd::Expired) if epoch.number == owner => None,
        // The servers may keep the session, and its nodes, for a while.
        Cause::Ended(_) => core.epoch_after(epoch.number).await.ok(),
        Cause::LinkLost => Some(Arc::clone(epoch)),
        Cause::Deadline | Cause::QueueFull | Cause::TooLarge { .. } => {
            tokio::time::sleep(PAUSE).await;
            Some(Arc::clone(epoch))
        }
    }
}
