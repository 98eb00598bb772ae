//! Proof that a ticket's node and session live.

use super::line::Ticket;
use super::turn::WaitError;
use crate::error::{Error, ErrorKind};
use crate::session::{Lane, Outcome, Pending};
use docent_proto::{Code, MultiOp, MultiResult, Request, Response};

impl Ticket {
    /// True when the ticket was drawn so recently that its listing still counts.
    pub(super) fn is_new(&self) -> bool {
        self.generation.clock.now().since(self.drawn) < self.generation.lease.timing().pause()
    }

    /// True when a write was acknowledged so recently that the session surely lives.
    pub(super) fn is_fresh(&self) -> bool {
        let lease = &self.generation.lease;
        // `proof` is the time that the newest write counts as sent at, which is earlier than it was sent
        // where the servers had heard little before it. A new hold wants a write that is younger than the
        // pace of heartbeats, although the lease runs longer, so that it begins with most of its lease
        // (decision 3).
        self.generation.clock.now().since(lease.proof()) < lease.timing().pulse()
    }

    /// Checks, at a quorum, that the own node is there. The acknowledgement renews the lease.
    pub(super) async fn prove(&self) -> Result<(), WaitError> {
        let lease = &self.generation.lease;
        while !self.proven(self.submit_check().await).await? {}
        if lease.mark(self.generation.clock.now()).is_none() {
            // The servers had heard so little of this client before the check that it gave no lease, nor
            // would another at once: answers count only a relay after they came (decision 3).
            tokio::time::sleep(lease.timing().pause()).await;
        }
        Ok(())
    }

    pub(super) fn submit_check(&self) -> Pending {
        let check = MultiOp::Check { path: self.path.clone(), version: -1 };
        self.generation.session.submit(Request::Multi(vec![check]), Lane::Call)
    }

    /// True when the check found the node; false when the caller shall send it again.
    pub(super) async fn proven(&self, checked: Outcome) -> Result<bool, WaitError> {
        let Some(reply) = self.reply(checked).await? else { return Ok(false) };
        let code = match reply.result {
            Ok(Response::Multi(results)) => results.first().and_then(|result| match result {
                MultiResult::Failed(code) => Some(*code),
                _ => None,
            }),
            Ok(_) => None,
            Err(code) => Some(code),
        };
        match code {
            None => Ok(true),
            Some(Code::NO_NODE) => Err(WaitError::Gone),
            Some(code) => Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
        }
    }

    pub(super) fn refuse_short_lease(&self) -> Result<(), Error> {
        let accepted = self.line.client().core().config.accept_short_lease;
        match self.generation.refuses_guards(accepted) {
            Some(detail) => Err(self.error(ErrorKind::ShortLease).because(detail)),
            None => Ok(()),
        }
    }
}
