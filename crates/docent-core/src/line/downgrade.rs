//! Step from the exclusive side of a line to its shared one, without leaving the line.

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
    /// Becomes a hold of `shared`, the shared side of its line, in its old place: a node with its number is
    /// created before its own is deleted, as Curator does. Nobody else can come to hold the exclusive side in
    /// between. It keeps its fence and its token.
    ///
    /// # Errors
    /// `InvalidInput` if it is the hold of a claim, which is in no line, or if it is [lent](Self::lend): the
    /// next lent hold would be exclusive beside the shared one. `Lost`, `NoAuth`, `Timeout`, `Closed`. The
    /// hold is given up then.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but the hold is given up.
    pub async fn downgrade(self, shared: &Line) -> Result<Self, Error> {
        let lower = self.beside(shared).await?;
        self.give_way(&lower)?;
        Ok(lower)
    }

    /// A hold of `shared`, the shared side of its line, beside itself: its node has the same number, and was
    /// created while this one's was there. It has this one's fence, and goes on when this one has ended, in
    /// whichever way. Those who wait for the exclusive side wait for both.
    ///
    /// # Errors
    /// As [`downgrade`](Self::downgrade).
    ///
    /// # Cancel safety
    /// This method is cancel safe: the node is deleted.
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
        // From here on the drop of the lower hold deletes the new node.
        let lower = Self::new(shared.client().clone(), shared.path().to_owned(), shared.role(), state);
        shared.recipe().metrics.acquired(Duration::ZERO);
        lower.check_for("downgrade")?;
        Ok(lower)
    }

    /// Ends in favour of `lower`, a hold [beside](Self::beside) it, whose loss its tokens tell of from now
    /// on.
    ///
    /// # Errors
    /// `Lost` when one of the two is. This one is given up all the same.
    pub fn give_way(self, lower: &Self) -> Result<(), Error> {
        self.state().hand_over().map_err(|reason| self.lost_in("downgrade", reason))?;
        self.state().pass_token(lower.state());
        lower.check_for("downgrade")
        // Only now, with the new node there, is the old one deleted, in the order of calls: that is no loss.
    }

    /// Creates the shared node while the exclusive one exists, or not at all. Ends with the hold.
    async fn step_down(&self, shared: &Line) -> Result<(String, i64), Error> {
        // A node that is created after all does not stay: the intent is dropped with the rest.
        let step_down = while_held(slice::from_ref(self.state()), self.step_down_once(shared));
        step_down.await.unwrap_or_else(|reason| Err(self.lost_in("downgrade", reason)))
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

    /// Submits the create. A node that nobody takes over does not stay, also where the reply is lost.
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

/// The number at the end of a ticket's name: ten digits, because numbers near the end of the counter are
/// refused. A marker may end with a digit.
fn number_of(own: &str) -> &str {
    const DIGITS: usize = 10;
    own.len().checked_sub(DIGITS).and_then(|start| own.get(start..)).unwrap_or_default()
}
