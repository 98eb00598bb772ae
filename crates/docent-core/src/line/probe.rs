//! Requests of a ticket about its line and its own node, repeated until the servers answer.

use super::draw::{list_request, refusal};
use super::position::Position;
use super::{Ticket, WaitError};
use crate::error::{Error, ErrorKind};
use crate::session::retry::{Stop, answered};
use crate::session::{Lane, Outcome, Pending, Reply, SessionEnd};
use docent_proto::{Code, MultiOp, Request, Response};

impl Ticket {
    pub(super) async fn list(&self) -> Result<Position, WaitError> {
        let listed = self.generation.session.submit(list_request(&self.line), Lane::Call).await;
        self.position_in(listed).await
    }

    pub(super) async fn position_in(&self, mut listed: Outcome) -> Result<Position, WaitError> {
        loop {
            if let Some(reply) = self.reply(listed).await? {
                return match reply.result {
                    Ok(Response::Children { names, .. }) => {
                        // This listing may contain a node of a lost create that was applied late (decision
                        // 11).
                        self.generation.lost_creates.observe_listing(self.line.full_path(), &names);
                        self.line.refuse_other_kinds(Some(self.name()), &names)?;
                        Ok(self.line.position(self.name(), &names))
                    }
                    // If the line does not exist, neither does the ticket.
                    Ok(_) | Err(Code::NO_NODE) => Err(WaitError::Gone),
                    Err(code) => Err(self.line.refused(code).into()),
                };
            }
            listed = self.generation.session.submit(list_request(&self.line), Lane::Call).await;
        }
    }

    /// Finds the place by the transactions that created the contenders: one read for each, all in one round
    /// trip.
    pub(super) async fn position_by_creation(&self, contenders: Vec<String>) -> Result<Position, WaitError> {
        let reads = contenders.into_iter().map(|name| {
            let stat = self.submit_exists(&name);
            (name, stat)
        });
        let mut created = Vec::new();
        for (name, stat) in reads.collect::<Vec<_>>() {
            match self.reply(stat.await).await? {
                None => return Ok(Position::Unlisted),
                Some(reply) => {
                    // A contender that left since the listing may have downgraded, and be in the line under
                    // another name. The line is listed again.
                    let Ok(Response::Stat(stat)) = reply.result else { return Ok(Position::Unlisted) };
                    created.push((stat.czxid, name));
                }
            }
        }
        Ok(self.line.position_by_creation(self.name(), &created))
    }

    fn submit_exists(&self, name: &str) -> Pending {
        let path = format!("{}/{name}", self.line.full_path());
        self.generation.session.submit(Request::Exists { path, watch: false }, Lane::Call)
    }

    /// Returns the reply, or `None` if the caller should send the request again: all requests about a line
    /// can be repeated. A wait that may have taken hours is not given up because a server or the client's own
    /// queue is overloaded.
    pub(super) async fn reply(&self, outcome: Outcome) -> Result<Option<Reply>, WaitError> {
        answered(outcome).await.map_err(|stop| match stop {
            Stop::Ended(end) => self.ended(end),
            Stop::TooLarge { size, limit } => {
                Error::too_large(self.line.operation(), size, limit).at(self.line.path()).into()
            }
        })
    }

    pub(super) fn ended(&self, end: SessionEnd) -> WaitError {
        match end {
            SessionEnd::Closed => self.error(ErrorKind::Closed).into(),
            SessionEnd::AuthFailed => self.error(ErrorKind::AuthFailed).into(),
            SessionEnd::Expired | SessionEnd::Abandoned | SessionEnd::RolledBack => WaitError::Gone,
        }
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.line.operation()).at(self.line.path())
    }

    /// Returns true if the ticket was taken so recently that its listing still counts.
    pub(super) fn listed_recently(&self) -> bool {
        self.generation.clock.now().since(self.taken) < self.generation.lease.timing().pause()
    }

    /// Returns true if a write was acknowledged so recently that the session is certainly alive.
    pub(super) fn acked_recently(&self) -> bool {
        let lease = &self.generation.lease;
        // `proof` is the time at which the newest write counts as sent. This is earlier than the actual time
        // if the servers had received little before the write. A new hold needs a write that is younger than
        // the pace of heartbeats, although the lease lasts longer, so that the hold begins with most of its
        // lease (decision 3).
        self.generation.clock.now().since(lease.proof()) < lease.timing().pulse()
    }

    /// Checks through a quorum that the own node exists. The acknowledgement renews the lease.
    pub(super) async fn check_own_node(&self) -> Result<(), WaitError> {
        while !self.proven(self.submit_check().await).await? {}
        self.lease_begun().await;
        Ok(())
    }

    /// Waits until an answered check gives a lease.
    pub(super) async fn lease_begun(&self) {
        let lease = &self.generation.lease;
        if lease.mark(self.generation.clock.now()).is_none() {
            // The servers had received so little from this client before the check that it gave no lease.
            // Another check right away would not either: answers count only after a relay interval (decision
            // 3).
            tokio::time::sleep(lease.timing().pause()).await;
        }
    }

    pub(super) fn submit_check(&self) -> Pending {
        let check = MultiOp::Check { path: self.node.path.clone(), version: -1 };
        self.generation.session.submit(Request::Multi(vec![check]), Lane::Call)
    }

    /// Returns true if the check found all its nodes; false if the caller should send the check again.
    pub(super) async fn proven(&self, checked: Outcome) -> Result<bool, WaitError> {
        let Some(reply) = self.reply(checked).await? else { return Ok(false) };
        let code = match reply.result {
            Ok(Response::Multi(results)) => refusal(&results),
            Ok(_) => None,
            Err(code) => Some(code),
        };
        match code {
            None => Ok(true),
            Some(Code::NO_NODE) => Err(WaitError::Gone),
            Some(code) => Err(self.line.refused(code).into()),
        }
    }

    /// Refuses to hold if the session's lease is too short, or if the client's shutdown has progressed too
    /// far.
    pub(super) fn refuse_hold(&self) -> Result<(), Error> {
        self.line.refuse_stopping()?;
        let accepted = self.line.client().shared().config.accept_short_lease;
        match self.generation.refuses_guards(accepted) {
            Some(detail) => Err(self.error(ErrorKind::ShortLease).because(detail)),
            None => Ok(()),
        }
    }
}
