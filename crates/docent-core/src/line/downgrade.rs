//! Downgrade from the exclusive side of a line to its shared side, without leaving the line.

use super::Line;
use super::draw::{Intent, refusal};
use super::name::protected;
use crate::cleanup::OwnedNode;
use crate::client::while_held;
use crate::error::{Error, ErrorKind};
use crate::guard::{Beginning, LostReason};
use crate::hold::Hold;
use crate::operation::{Attempts, Idempotency, unexpected};
use crate::session::{Cause, Lane, Outcome};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult, Request, Response};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

impl Hold {
    /// Downgrades this hold to a hold of `shared`, the shared side of its line, at the same place in the
    /// line.
    ///
    /// A node with the same number is created before the exclusive node is deleted, as in Curator. No other
    /// contender can obtain the exclusive side in between. The new hold keeps the fence and the token.
    ///
    /// # Errors
    /// `InvalidInput` if this is the hold of a claim, which is in no line, or if this hold is
    /// [lent](Self::lend): the next lent hold would be exclusive alongside the shared one. `Lost`, `NoAuth`,
    /// `Timeout`, `Closed`. After an error the hold is given up.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it gives up the hold.
    pub async fn downgrade(self, shared: &Line) -> Result<Self, Error> {
        let lower = self.beside(shared).await?;
        self.hand_over_to(&lower)?;
        Ok(lower)
    }

    /// Creates a hold of `shared`, the shared side of its line, next to this hold.
    ///
    /// The node of the new hold has the same number, and is created while this hold's node exists. The new
    /// hold has the same fence, and outlives this hold, however this hold ends. Contenders that wait for the
    /// exclusive side wait for both nodes.
    ///
    /// # Errors
    /// Same as [`downgrade`](Self::downgrade).
    ///
    /// # Cancel safety
    /// This method is cancel safe: the new node is deleted.
    pub async fn beside(&self, shared: &Line) -> Result<Self, Error> {
        if self.state().node.is_claim() {
            let detail = format!("{:?} must be in a line", self.path());
            return Err(Error::invalid_input("downgrade", detail));
        }
        if self.is_lent() {
            let detail = format!("the hold of {:?} must not be lent", self.path());
            return Err(Error::invalid_input("downgrade", detail));
        }
        let (path, czxid) = self.step_down(shared).await?;
        let generation = Arc::clone(&self.state().generation);
        let node = Arc::new(OwnedNode::by_name(Arc::clone(&generation), path, czxid));
        let beginning = Beginning::of(Arc::new(shared.client().shared().identity.clone().into()));
        let state = Arc::new(self.state().beside(node, beginning));
        generation.add(&state);
        // From here on, dropping the lower hold deletes the new node.
        let lower = Self::new(shared.client().clone(), shared.path().to_owned(), shared.role(), state);
        shared.recipe().metrics.acquired(Duration::ZERO);
        lower.check_for("downgrade")?;
        Ok(lower)
    }

    /// Ends this hold in favour of `lower`, a hold [beside](Self::beside) this one. From now on, the tokens
    /// of this hold report the loss of `lower`.
    ///
    /// # Errors
    /// `Lost` if either hold is lost. This hold ends in any case.
    pub fn hand_over_to(self, lower: &Self) -> Result<(), Error> {
        self.state().hand_over().map_err(|reason| self.lost_error("downgrade", reason))?;
        self.state().pass_token(lower.state());
        lower.check_for("downgrade")
        // The old node is deleted only now, when the new node exists, in the order of calls. This is not a
        // loss.
    }

    /// Creates the shared node only while the exclusive one exists. Stops when the hold ends.
    async fn step_down(&self, shared: &Line) -> Result<(String, i64), Error> {
        // If the node is created after this future was dropped, the dropped intent deletes the node.
        let step_down = while_held(slice::from_ref(self.state()), self.step_down_once(shared));
        step_down.await.unwrap_or_else(|reason| Err(self.lost_error("downgrade", reason)))
    }

    async fn step_down_once(&self, shared: &Line) -> Result<(String, i64), Error> {
        let mut attempts = shared.client().attempts("downgrade", shared.path(), Idempotency::Idempotent);
        let generation = &self.state().generation;
        loop {
            self.check_for("downgrade")?;
            let mut intent = self.intent(shared);
            let outcome = intent.create.by(attempts.deadline).await;
            intent.unknown = matches!(outcome, Outcome::Unknown(Cause::Ended(_)));
            if let Outcome::Unknown(Cause::LinkLost) = outcome
                && let Some((mut paths, stat)) = intent.find(&attempts).await?
                && let Some(path) = paths.pop()
            {
                return Ok((path, stat.czxid));
            }
            match attempts.next(generation, outcome).await? {
                None => {}
                Some(Ok(Response::Multi(results))) => return self.stepped_down(&results, &attempts),
                Some(Ok(other)) => return Err(unexpected("downgrade", &other)),
                Some(Err(code)) => return Err(attempts.code(code)),
            }
        }
    }

    fn stepped_down(&self, results: &[MultiResult], attempts: &Attempts<'_>) -> Result<(String, i64), Error> {
        match results {
            [_, MultiResult::Created { path, stat }] => {
                Ok((path.clone(), stat.as_ref().map_or(0, |stat| stat.czxid)))
            }
            [MultiResult::Failed(Code::NO_NODE), ..] => {
                let reason = self.state().mark_lost(LostReason::NodeDeleted);
                Err(attempts.error(ErrorKind::Lost(reason)))
            }
            results => {
                let unexpected = || unexpected("downgrade", &Response::Multi(results.to_vec()));
                Err(refusal(results).map_or_else(unexpected, |code| attempts.code(code)))
            }
        }
    }

    /// Submits the create. If no one takes over the node, it is deleted, even if the reply is lost.
    fn intent(&self, shared: &Line) -> Intent {
        let generation = Arc::clone(&self.state().generation);
        let own = self.state().path();
        let number = number_of(own);
        let (number, mode) = match planted!(DowngradeTakesNewPlace) {
            true => ("", CreateMode::EphemeralSequential),
            false => (number, CreateMode::Ephemeral),
        };
        let name = protected(generation.fresh_id(), shared.marker());
        let path = format!("{}/{name}{number}", shared.full_path());
        let shared = shared.client().shared();
        let identity = Bytes::from(shared.identity.clone());
        let create = Create::new(path.clone(), identity, shared.acl(&path), mode, 0);
        let check = MultiOp::Check { path: own.to_owned(), version: -1 };
        let request = Request::Multi(vec![check, MultiOp::Create(create)]);
        let create = generation.session.submit(request, Lane::Call);
        Intent { generation, prefix: path, create, unknown: false }
    }
}

/// Returns the number at the end of a ticket's name. Only the last ten digits count, because a marker may end
/// with a digit. Ten digits always suffice, because numbers near the end of the counter are refused.
fn number_of(own: &str) -> &str {
    const DIGITS: usize = 10;
    own.len().checked_sub(DIGITS).and_then(|start| own.get(start..)).unwrap_or_default()
}
