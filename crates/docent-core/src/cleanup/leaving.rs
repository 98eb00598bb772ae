use super::claim::{LOOK_FIRST, delete_once};
use super::own::delete;
use super::{Doomed, Job};
use crate::claim::ClaimNode;
use crate::epoch::Epoch;
use crate::session::{Lane, Outcome, Pending};
use docent_proto::Code;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

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
