use super::by_czxid::{delete_by_czxid, delete_exactly};
use super::by_name::{delete_node, delete_request};
use super::owned_node::Identity;
use super::{Ended, ExactWrite, Host, Job, OwnedNode};
use crate::session::{Lane, Outcome, Pending};
use docent_proto::Code;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Delete of a node on its way. Its drop hands the rest to the worker.
#[derive(Debug)]
pub(crate) struct Deletion {
    node: Arc<OwnedNode>,
    delete: Delete,
    /// True once nothing is left to do for the worker.
    done: bool,
}

/// Outcome of the delete of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteOutcome {
    /// It is gone.
    Gone,
    /// The servers refuse to delete it.
    Refused(Code),
    /// The client was closed; the node goes with its session.
    Closed,
    /// Not yet: the worker goes on.
    Timeout,
}

impl Deletion {
    /// Submits the delete: it has its place in the order of calls now.
    ///
    /// Where it is not certain that a node which shares its path is still the same, or no marker for an exact
    /// write is free, that is left to the worker: a drop cannot wait for either.
    pub(crate) fn new(node: Arc<OwnedNode>) -> Self {
        let context = &node.context;
        let delete = match node.identity {
            Identity::ByName => {
                Delete::Sent(context.session.submit(delete_request(&node.path), Lane::Cleanup))
            }
            Identity::ByCzxid { .. } => {
                let losses = context.losses();
                let marker = Some(context)
                    .filter(|_| node.is_confirmed_at(losses))
                    .and_then(|context| context.markers.try_take(context));
                let exactly = |marker| Delete::Exact(delete_exactly(&node, marker, losses));
                marker.map_or(Delete::NotYet, exactly)
            }
        };
        Self { node, delete, done: false }
    }

    /// As [`new`](Self::new), for a node that may be gone already: where it shares its path, another may be
    /// in its place, and the worker looks first.
    pub(crate) fn of_doubtful(node: Arc<OwnedNode>) -> Self {
        match node.shares_path() {
            true => Self { node, delete: Delete::NotYet, done: false },
            false => Self::new(node),
        }
    }

    /// Waits until the node is gone, at most until `deadline`.
    pub(crate) async fn by(mut self, deadline: Instant) -> DeleteOutcome {
        match self.first_attempt(deadline).await {
            Some(left) => return left,
            None if Instant::now() >= deadline => return DeleteOutcome::Timeout,
            None => {}
        }
        // More than one attempt is the worker's business.
        let (done, left) = oneshot::channel();
        self.hand_over(Some(done));
        match tokio::time::timeout_at(deadline, left).await {
            Ok(Ok(left)) => left,
            Ok(Err(_)) => DeleteOutcome::Closed,
            Err(_) => DeleteOutcome::Timeout,
        }
    }

    /// Outcome of the submitted delete; `None` when another attempt is needed, or more time.
    async fn first_attempt(&mut self, deadline: Instant) -> Option<DeleteOutcome> {
        let gone = match &mut self.delete {
            Delete::NotYet => false,
            Delete::Sent(reply) => match tokio::time::timeout_at(deadline, &mut *reply).await {
                Ok(Outcome::Reply(answer)) if matches!(answer.refusal(), None | Some(Code::NO_NODE)) => true,
                Ok(outcome) => {
                    *reply = Pending::ready(outcome);
                    false
                }
                Err(_) => false,
            },
            Delete::Exact(write) => match write.ended(deadline).await {
                Ended::Applied(..) => true,
                // It may still be applied: the worker finds out before it sends another.
                Ended::Unknown(_) => false,
                // The worker's look at the node shows whether another delete is needed.
                _ => {
                    self.delete = Delete::NotYet;
                    false
                }
            },
        };
        self.done = gone;
        gone.then_some(DeleteOutcome::Gone)
    }

    fn hand_over(&mut self, done: Option<oneshot::Sender<DeleteOutcome>>) {
        if !std::mem::replace(&mut self.done, true) {
            let delete = std::mem::replace(&mut self.delete, Delete::NotYet);
            let node = Arc::clone(&self.node);
            self.node.context.cleanup.send(Job::Node { node, delete, done });
        }
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}

/// Delete that may have been submitted.
#[derive(Debug)]
pub(super) enum Delete {
    /// Not yet: a look at the node comes first.
    NotYet,
    /// Of a node whose name is ours alone.
    Sent(Pending),
    Exact(ExactWrite),
}

/// Deletes `node`, whose delete may be under way.
pub(super) async fn delete(host: &dyn Host, node: &OwnedNode, delete: Delete) -> DeleteOutcome {
    let sent = match (&node.identity, delete) {
        (Identity::ByCzxid { .. }, Delete::Exact(write)) => {
            return delete_by_czxid(host.setup(), node, Some(write)).await;
        }
        (Identity::ByCzxid { .. }, _) => return delete_by_czxid(host.setup(), node, None).await,
        (Identity::ByName, Delete::Sent(reply)) => Some(reply),
        (Identity::ByName, _) => None,
    };
    delete_node(host, Arc::clone(&node.context), node.path.clone(), sent).await
}
