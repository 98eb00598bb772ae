use super::by_claim::{self, Deleted, delete_claim};
use super::by_name::{self, delete_node};
use super::{Job, OwnedNode};
use crate::operation::Shared;
use crate::session::{Lane, Outcome, Pending};
use docent_proto::Code;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Delete of a node on its way. Its drop hands the rest to the worker.
#[derive(Debug)]
pub(crate) struct Deletion {
    node: Arc<OwnedNode>,
    /// The request; `None` once it was handed to the worker.
    sent: Option<Pending>,
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
    pub(crate) fn new(node: Arc<OwnedNode>) -> Self {
        let request = match node.is_claim() {
            true => by_claim::delete_request(&node),
            false => by_name::delete_request(&node.path),
        };
        let sent = node.generation.session.submit(request, Lane::Cleanup);
        Self { node, sent: Some(sent), done: false }
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
        let outcome = tokio::time::timeout_at(deadline, self.sent.as_mut()?).await.ok()?;
        self.done = is_deleted(&self.node, &outcome);
        self.sent = Some(Pending::ready(outcome));
        self.done.then_some(DeleteOutcome::Gone)
    }

    fn hand_over(&mut self, done: Option<oneshot::Sender<DeleteOutcome>>) {
        if !std::mem::replace(&mut self.done, true) {
            let node = Arc::clone(&self.node);
            self.node.generation.cleanup.send(Job::Node { node, sent: self.sent.take(), done });
        }
    }
}

fn is_deleted(node: &OwnedNode, outcome: &Outcome) -> bool {
    match outcome {
        _ if node.is_claim() => matches!(by_claim::deleted(outcome), Deleted::Gone),
        Outcome::Reply(answer) => matches!(answer.refusal(), None | Some(Code::NO_NODE)),
        Outcome::NotSent(_) | Outcome::Unknown(_) => false,
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}

/// Deletes `node`; `sent` is the request that is under way.
pub(super) async fn delete(client: &Shared, node: &OwnedNode, sent: Option<Pending>) -> DeleteOutcome {
    match node.is_claim() {
        true => delete_claim(client, node, sent).await,
        false => delete_node(client, Arc::clone(&node.generation), node.path.clone(), sent).await,
    }
}
