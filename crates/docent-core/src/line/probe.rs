//! Requests of a ticket about its line and its own node, repeated until there is an answer.

use super::draw::{list_request, refusal};
use super::position::Position;
use super::{Ticket, WaitError};
use crate::error::{Error, ErrorKind};
use crate::session::ask::{Stop, answered};
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
                        // A node that a lost create made late may stand in this listing (decision 11).
                        self.generation.lost_creates.pass_by(self.line.full_path(), &names);
                        self.line.refuse_others(Some(self.name()), &names)?;
                        Ok(self.line.position(self.name(), &names))
                    }
                    // Without the line there is no ticket.
                    Ok(_) | Err(Code::NO_NODE) => Err(WaitError::Gone),
                    Err(code) => Err(self.line.refused(code).into()),
                };
            }
            listed = self.generation.session.submit(list_request(&self.line), Lane::Call).await;
        }
    }

    /// The place by the transactions that created the contenders: one read for each, all in one trip.
    pub(super) async fn position_by_creation(&self, contenders: Vec<String>) -> Result<Position, WaitError> {
        let reads = contenders.into_iter().map(|name| {
            let stat = self.submit_look(&name);
            (name, stat)
        });
        let mut created = Vec::new();
        for (name, stat) in reads.collect::<Vec<_>>() {
            match self.reply(stat.await).await? {
                None => return Ok(Position::Unlisted),
                Some(reply) => {
                    // A contender that left since the listing may have stepped down, and stand in the line
                    // under another name: the line is listed again.
                    let Ok(Response::Stat(stat)) = reply.result else { return Ok(Position::Unlisted) };
                    created.push((stat.czxid, name));
                }
            }
        }
        Ok(self.line.position_by_creation(self.name(), &created))
    }

    fn submit_look(&self, name: &str) -> Pending {
        let path = format!("{}/{name}", self.line.full_path());
        self.generation.session.submit(Request::Exists { path, watch: false }, Lane::Call)
    }

    /// Returns the answer, or `None` when the caller shall send the request again: all requests about a line
    /// can be repeated. A wait that may have taken hours is not given up because a server or the own queue is
    /// too busy now.
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

    /// True when the ticket was taken so recently that its listing still counts.
    pub(super) fn listed_recently(&self) -> bool {
        self.generation.clock.now().since(self.taken) < self.generation.lease.timing().pause()
    }

    /// True when a write was acknowledged so recently that the session surely lives.
    pub(super) fn acked_recently(&self) -> bool {
        let lease = &self.generation.lease;
        // `proof` is the time that the newest write counts as sent at, which is earlier than it was sent
        // where the servers had heard little before it. A new hold wants a write that is younger than the
        // pace of heartbeats, although the lease runs longer, so that it begins with most of its lease
        // (decision 3).
        self.generation.clock.now().since(lease.proof()) < lease.timing().pulse()
    }

    /// Checks, at a quorum, that the own node is there. The acknowledgement renews the lease.
    pub(super) async fn check_own_node(&self) -> Result<(), WaitError> {
        while !self.proven(self.submit_check().await).await? {}
        self.lease_begun().await;
        Ok(())
    }

    /// Waits until a check that was answered gives a lease.
    pub(super) async fn lease_begun(&self) {
        let lease = &self.generation.lease;
        if lease.mark(self.generation.clock.now()).is_none() {
            // The servers had heard so little of this client before the check that it gave no lease, nor
            // would another at once: answers count only a relay after they came (decision 3).
            tokio::time::sleep(lease.timing().pause()).await;
        }
    }

    pub(super) fn submit_check(&self) -> Pending {
        let check = MultiOp::Check { path: self.node.path.clone(), version: -1 };
        self.generation.session.submit(Request::Multi(vec![check]), Lane::Call)
    }

    /// True when the check found the node, or each of them; false when the caller shall send it again.
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

    /// Refuses to hold where the session's lease is too short, or the client's shutdown has come so far.
    pub(super) fn refuse_hold(&self) -> Result<(), Error> {
        self.line.refuse_stopping()?;
        let accepted = self.line.client().shared().config.accept_short_lease;
        match self.generation.refuses_guards(accepted) {
            Some(detail) => Err(self.error(ErrorKind::ShortLease).because(detail)),
            None => Ok(()),
        }
    }
}
