use super::claim::delete_exactly;
use super::doomed::{Delete, Doomed};
use super::own::delete;
use super::{ClaimNode, Job};
use crate::client::generation::SessionGeneration;
use crate::operation::exact::Ended;
use crate::session::{Lane, Outcome, Pending};
use docent_proto::Code;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Delete of a node on its way. Its drop hands the rest to the worker.
#[derive(Debug)]
pub(crate) struct Leaving {
    node: Doomed,
    delete: Delete,
    /// True once nothing is left to do for the worker.
    done: bool,
}

/// Outcome of the delete of a node.
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
    pub(crate) fn new(generation: Arc<SessionGeneration>, path: String) -> Self {
        let reply = generation.session.submit(delete(&path), Lane::Cleanup);
        Self { node: Doomed::Own { generation, path }, delete: Delete::Sent(reply), done: false }
    }

    /// Submits the delete of a claim's node. Where it is not certain that the node is still the same, or no
    /// marker for an exact write is free, that is left to the worker: a drop cannot wait for either.
    pub(crate) fn of_claim(node: Arc<ClaimNode>) -> Self {
        let losses = node.generation.losses();
        let marker = Some(&node.generation)
            .filter(|_| node.is_confirmed_at(losses))
            .and_then(|generation| generation.markers.try_take(generation));
        let exactly = |marker| Delete::Exact(delete_exactly(&node, marker, losses));
        let delete = marker.map_or(Delete::NotYet, exactly);
        Self { node: Doomed::Claim(node), delete, done: false }
    }

    /// Deletes a claim's node if it is still there: it may be gone already, and another claim in its place.
    pub(crate) fn of_claim_perhaps(node: Arc<ClaimNode>) -> Self {
        Self { node: Doomed::Claim(node), delete: Delete::NotYet, done: false }
    }

    /// Waits until the node is gone, at most until `deadline`.
    pub(crate) async fn by(mut self, deadline: Instant) -> Left {
        match self.first_attempt(deadline).await {
            Some(left) => return left,
            None if Instant::now() >= deadline => return Left::Timeout,
            None => {}
        }
        // More than one attempt is the worker's business.
        let (done, left) = oneshot::channel();
        self.hand_over(Some(done));
        match tokio::time::timeout_at(deadline, left).await {
            Ok(Ok(left)) => left,
            Ok(Err(_)) => Left::Closed,
            Err(_) => Left::Timeout,
        }
    }

    /// Outcome of the submitted delete; `None` when another attempt is needed, or more time.
    async fn first_attempt(&mut self, deadline: Instant) -> Option<Left> {
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
        gone.then_some(Left::Gone)
    }

    fn hand_over(&mut self, done: Option<oneshot::Sender<Left>>) {
        if !std::mem::replace(&mut self.done, true) {
            let delete = std::mem::replace(&mut self.delete, Delete::NotYet);
            let node = self.node.clone();
            self.node.generation().cleanup.send(Job::Node { node, delete, done });
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}
