use super::drawing::{self, ClaimRequest, ClaimResult};
use crate::cleanup::{ClaimNode, Leaving};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::{Fence, Held, Lost, LostReason, gone, run_while, verify};
use crate::operation::{Transaction, TransactionResult};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Exclusive hold by an ephemeral node at a fixed path, which others may use before and afterwards.
///
/// # Guarantees
/// It is taken for ours only if it is proven to be: by the reply, or after a lost one by the id in the data
/// of the write's marker, in the same session. It is deleted in that session only, and after a lost reply
/// only while it is the same node: never one that somebody else made at the path since.
///
/// # Assumptions
/// Nobody deletes the node by hand while its session lives. A watch tells of such a delete; until then the
/// next claim could be taken for this one.
///
/// # On drop
/// The node is deleted, and that is tried until it is done or the session has ended. It is submitted in order
/// with other calls where a marker for an exact write is free at once; of several that are dropped together,
/// most are deleted a round trip later. Never blocks or panics, also outside a runtime.
#[must_use = "dropping a claim gives it up"]
pub struct Claim {
    client: Client,
    /// Path as the user wrote it.
    path: String,
    node: Arc<ClaimNode>,
    held: Arc<Held>,
    /// Set once a delete of it was sent together with other writes: it may be gone, and another in its place.
    ending: bool,
    /// Set once `release_after` handed its delete to cleanup.
    later: bool,
}

impl Claim {
    pub(super) fn new(client: Client, path: String, node: Arc<ClaimNode>, held: Arc<Held>) -> Self {
        Self { client, path, node, held, ending: false, later: false }
    }

    /// Claims all of `wanted` in one write, all or none, and reads the nodes that they are claims of in the
    /// same trip. `recipe` is the label of the metrics.
    ///
    /// # Errors
    /// `ShortLease` when the session timeout is below four ticks of the server, `NoAuth`, `TooLarge`,
    /// `Timeout`, `Closed`; `InvalidInput` when nothing is wanted or a path breaks a rule.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the claims are deleted, also where the reply is lost.
    pub async fn take(
        client: &Client,
        wanted: &[ClaimRequest],
        recipe: &'static str,
    ) -> Result<ClaimResult, Error> {
        drawing::draw(client, wanted, recipe).await
    }

    /// Deletes the node of a claim that no guard holds.
    pub(super) fn give_back(node: Arc<ClaimNode>) {
        if node.leave() {
            drop(Leaving::of_claim(node));
        }
    }

    /// The fencing token.
    pub fn fence(&self) -> Fence {
        self.held.fence
    }

    /// The path of its node.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// True while it is certain that nobody else holds it: compares clock and session, without I/O. Right
    /// even after the process was frozen. Once false it never becomes true again.
    pub fn is_held(&self) -> bool {
        self.held.check().is_ok()
    }

    /// As [`is_held`](Self::is_held), with the reason.
    ///
    /// # Errors
    /// [`Lost`] with the first reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.held.check().map_err(|reason| Lost { reason })
    }

    /// Resolves when it is lost.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.held.lost().await
    }

    /// Cancelled when it is lost. Cancelling it changes nothing about the claim.
    pub fn token(&self) -> CancellationToken {
        self.held.token().child_token()
    }

    /// Polls `future` for as long as it is held: the clock is looked at before every poll.
    ///
    /// # Errors
    /// [`Lost`] as soon as it is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        run_while(|| self.check(), self.held.lost(), future).await
    }

    /// Asks a quorum whether it is held. It was, at one moment between call and return.
    ///
    /// # Errors
    /// `Lost`, `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        verify(&self.client, &self.path, &self.held).await
    }

    /// Prepares writes that are applied, all together, only while it is held.
    pub fn transaction(&self) -> Transaction {
        Transaction::held(self.client.clone(), [Arc::clone(&self.held)])
    }

    /// Gives it up and waits until its node is deleted.
    ///
    /// # Errors
    /// `Lost` when it had been lost before. `Timeout` when no server could be reached in time, `Closed`: the
    /// node is deleted in the background then, or goes with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(mut self) -> Result<(), Error> {
        let was_held = self.held.hand_over();
        let deadline = self.client.deadline();
        gone("release", &self.path.clone(), deadline, was_held, self.leave()).await
    }

    /// Gives it up, and deletes its node after `delay`, or when the client is closed: nobody else gets it
    /// before.
    ///
    /// # Errors
    /// [`Lost`] when it had been lost before.
    pub fn release_after(mut self, delay: Duration) -> Result<(), Lost> {
        self.held.hand_over().map_err(|reason| Lost { reason })?;
        self.node.generation.cleanup.release_later(&self.node, delay);
        // The drop of this guard would delete the node at once.
        self.later = true;
        Ok(())
    }

    /// Ends `claims`, deletes `nodes` and applies `transaction`, all or nothing and exactly once, in the
    /// session that holds the claims. It happens in this order. `None` when it was applied but the reply with
    /// the results was lost.
    ///
    /// # Errors
    /// `InvalidInput` when claims and transaction are not of one client. `Lost` when one had been lost
    /// before, or one of the nodes is gone; that of the operation that failed, with its path. Nothing was
    /// applied then, and the claims are given up. `OutcomeUnknown` when the session ended, or the deadline
    /// passed, before it could be found out; `Timeout`, `TooLarge`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been applied. If it was not, the claims are given up.
    pub async fn end_with(
        mut claims: Vec<Self>,
        nodes: &[String],
        transaction: Transaction,
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        let Some(first) = claims.first() else {
            return Err(Error::invalid_input("claim", "a batch of 0 must be at least 1"));
        };
        // A client of another namespace would end other nodes at the same paths.
        let is_ours = |claim: &Self| Arc::ptr_eq(claim.client.core(), first.client.core());
        if !claims.iter().all(is_ours) || !transaction.is_of(&first.client) {
            return Err(Error::invalid_input("end", "what ends in one step must be of one client"));
        }
        let generation = Arc::clone(&first.node.generation);
        let lost = |claim: &Self, reason| Error::new(ErrorKind::Lost(reason), "end").at(&claim.path);
        for claim in &claims {
            claim.held.check().map_err(|reason| lost(claim, reason))?;
            if claim.node.generation.number != generation.number {
                // An acknowledgement is sent in the session of its claim or not at all (decision 8). Claims
                // of the older session are lost, or about to be.
                return Err(lost(claim, LostReason::SessionAbandoned));
            }
        }
        for claim in &mut claims {
            // From here on our own delete may end the claim, of which its watch tells: that is no loss.
            claim
                .held
                .hand_over()
                .map_err(|reason| Error::new(ErrorKind::Lost(reason), "end").at(&claim.path))?;
            claim.ending = true;
        }
        let own = claims.iter().map(|claim| claim.node.path.clone()).collect();
        let held: Vec<_> = claims.iter().map(|claim| Arc::clone(&claim.held)).collect();
        let done = transaction.commit_ending(&generation, &held, own, nodes).await;
        if done.is_ok() {
            claims.into_iter().for_each(Self::forget_node);
        }
        done
    }

    /// Forgets the node, which was deleted with the transaction.
    fn forget_node(self) {
        let _ = self.node.leave();
    }

    /// Submits the delete of the node; `None` when another call did so before, or the node is gone.
    fn leave(&mut self) -> Option<Leaving> {
        if self.later {
            return None;
        }
        let deleted = self.held.lost_reason() == Some(LostReason::NodeDeleted);
        if !self.node.leave() || deleted {
            return None;
        }
        Some(match self.ending {
            true => Leaving::of_claim_perhaps(Arc::clone(&self.node)),
            false => Leaving::of_claim(Arc::clone(&self.node)),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.held.release();
        drop(self.leave());
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}
