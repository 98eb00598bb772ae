//! Step from the exclusive side of a line to its shared one, without leaving the line.

use super::draw::Intent;
use super::hold::Hold;
use super::line::{Line, Ticket};
use super::name::protected;
use super::place::Place;
use crate::error::{Error, ErrorKind};
use crate::guard::LostReason;
use crate::operation::{Attempts, Outcomes, unexpected};
use crate::session::{Cause, Lane, Outcome};
use crate::telemetry;
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult, Request, Response};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

impl Hold {
    /// Becomes a hold of `shared`, the shared side of its line, in its old place: a node with its number is
    /// created before its own is deleted, as Curator does. Nobody else can come to hold the exclusive side in
    /// between. It keeps its fence and its token.
    ///
    /// # Errors
    /// `Lost`, `NoAuth`, `Timeout`, `Closed`. The hold is given up then.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but the hold is given up.
    pub async fn downgrade(self, shared: &Line) -> Result<Self, Error> {
        let (path, czxid) = self.step_down(shared).await?;
        let held = Arc::new(self.held().successor(path.clone()));
        // From here on the drop of this ticket deletes the new node.
        let ticket = Ticket {
            line: shared.clone(),
            generation: Arc::clone(&held.generation),
            path,
            czxid,
            drawn: held.generation.clock.now(),
            place: Place::First,
            left: AtomicBool::new(false),
            ahead: None,
        };
        let generation = Arc::clone(&held.generation);
        telemetry::acquired(shared.recipe(), Duration::ZERO);
        generation.add(&held);
        let lower = Self::new(ticket, held);
        let lost = |reason| Error::new(ErrorKind::Lost(reason), "downgrade").at(shared.path());
        self.held().hand_over().map_err(lost)?;
        lower.check_for("downgrade")?;
        // Only now, after the new node is there: the old one is deleted in the order of calls, and that is no
        // loss.
        drop(self);
        Ok(lower)
    }

    /// Creates the shared node while the exclusive one exists, or not at all.
    async fn step_down(&self, shared: &Line) -> Result<(String, i64), Error> {
        let mut attempts = Attempts::new(shared.client(), "downgrade", shared.path(), Outcomes::Repeatable);
        let generation = &self.held().generation;
        loop {
            self.check_for("downgrade")?;
            let mut intent = self.intent(shared);
            let outcome = intent.create.by(attempts.deadline).await;
            intent.unknown = matches!(outcome, Outcome::Unknown(Cause::Ended(_)));
            if let Outcome::Unknown(Cause::LinkLost) = outcome
                && let Some((path, stat)) = intent.find(&attempts).await?
            {
                return Ok((path, stat.czxid));
            }
            match attempts.judge(generation, outcome).await? {
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
                let reason = self.held().lose(LostReason::NodeDeleted);
                Err(attempts.error(ErrorKind::Lost(reason)))
            }
            results => {
                let refused = results.iter().find_map(|result| match result {
                    MultiResult::Failed(code) if *code != Code::OK => Some(*code),
                    _ => None,
                });
                let unexpected = || unexpected("downgrade", &Response::Multi(results.to_vec()));
                Err(refused.map_or_else(unexpected, |code| attempts.code(code)))
            }
        }
    }

    /// Submits the create. A node that nobody takes over does not stay, also where the reply is lost.
    fn intent(&self, shared: &Line) -> Intent {
        let generation = Arc::clone(&self.held().generation);
        let own = self.held().path.as_str();
        let number = own.rsplit_once(self.ticket().line.marker()).map_or("", |(_, number)| number);
        let (number, mode) = match planted!(DowngradeTakesNewPlace) {
            true => ("", CreateMode::EphemeralSequential),
            false => (number, CreateMode::Ephemeral),
        };
        let path = format!("{}/{}{number}", shared.full_path(), protected(shared.marker()));
        let core = shared.client().core();
        let identity = Bytes::from(core.identity.clone());
        let create = Create::new(path.clone(), identity, core.acl(&path), mode, 0);
        let check = MultiOp::Check { path: own.to_owned(), version: -1 };
        let request = Request::Multi(vec![check, MultiOp::Create(create)]);
        let create = generation.session.submit(request, Lane::Call);
        Intent { generation, prefix: path, create, unknown: false }
    }
}
