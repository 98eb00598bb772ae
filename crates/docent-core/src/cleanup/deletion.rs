use super::by_claim::{self, ClaimDeletion, delete_claim};
use super::by_name::{self, delete_node};
use super::{Job, OwnedNode};
use crate::operation::Shared;
use crate::session::{Lane, Outcome, Pending};
use docent_proto::Code;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A delete of a node in flight. Dropping it hands the rest of the work to the worker.
#[derive(Debug)]
pub(crate) struct Deletion {
    node: Arc<OwnedNode>,
    /// The request; `None` after it was handed to the worker.
    sent: Option<Pending>,
    /// True if nothing is left to do for the worker.
    done: bool,
}

/// Outcome of the delete of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteOutcome {
    /// The node is deleted.
    Deleted,
    /// The servers refuse to delete the node.
    Refused(Code),
    /// The client was closed; the node is deleted with its session.
    Closed,
    /// Not deleted yet: the worker continues.
    Timeout,
}

impl Deletion {
    /// Submits the delete, which now has its place in the order of calls.
    pub(crate) fn new(node: Arc<OwnedNode>) -> Self {
        let request = match node.is_claim() {
            true => by_claim::delete_request(&node),
            false => by_name::delete_request(&node.path),
        };
        let sent = node.generation.session.submit(request, Lane::Cleanup);
        Self { node, sent: Some(sent), done: false }
    }

    /// Waits until the node is deleted, at most until `deadline`.
    pub(crate) async fn by(mut self, deadline: Instant) -> DeleteOutcome {
        match self.first_attempt(deadline).await {
            Some(outcome) => return outcome,
            None if Instant::now() >= deadline => return DeleteOutcome::Timeout,
            None => {}
        }
        // Further attempts are left to the worker.
        let (done, outcome) = oneshot::channel();
        self.hand_over(Some(done));
        match tokio::time::timeout_at(deadline, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => DeleteOutcome::Closed,
            Err(_) => DeleteOutcome::Timeout,
        }
    }

    /// Returns the outcome of the submitted delete; `None` if another attempt or more time is needed.
    async fn first_attempt(&mut self, deadline: Instant) -> Option<DeleteOutcome> {
        let outcome = tokio::time::timeout_at(deadline, self.sent.as_mut()?).await.ok()?;
        self.done = is_deleted(&self.node, &outcome);
        self.sent = Some(Pending::ready(outcome));
        self.done.then_some(DeleteOutcome::Deleted)
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
        _ if node.is_claim() => matches!(by_claim::deleted(outcome), ClaimDeletion::Deleted),
        Outcome::Reply(answer) => matches!(answer.refusal(), None | Some(Code::NO_NODE)),
        Outcome::NotSent(_) | Outcome::Unknown(_) => false,
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}

/// Deletes `node`; `sent` is the request that is in flight.
pub(super) async fn delete(client: &Shared, node: &OwnedNode, sent: Option<Pending>) -> DeleteOutcome {
    match node.is_claim() {
        true => delete_claim(client, node, sent).await,
        false => delete_node(client, Arc::clone(&node.generation), node.path.clone(), sent).await,
    }
}
