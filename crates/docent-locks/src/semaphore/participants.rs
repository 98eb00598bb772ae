//! Those who take part in a semaphore.

use super::Semaphore;
use super::semaphore::LEASE;
use docent_core::{Error, Participant, Role};
use std::future::Future;

impl Semaphore {
    /// Everybody with a ticket: one entry for each permit that is held or about to be, then the waiters for
    /// their turn.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, and `InvalidInput` when the shared limit is not a number.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let semaphore = self.clone();
        async move { semaphore.everybody().await }
    }

    async fn everybody(&self) -> Result<Vec<Participant>, Error> {
        let (limit, leases) = (self.permits.limit().get().await?, self.permits.line().participants().await?);
        let mut turns = self.turns.participants().await?;
        let mut all = leases;
        for (place, participant) in all.iter_mut().enumerate() {
            participant.holds = place < limit as usize;
            participant.role = Role::Shared;
        }
        // The client that has the turn has its tickets for permits already.
        let is_listed =
            |turn: &Participant| all.iter().any(|one| one.session_id == turn.session_id && !one.holds);
        if turns.first().is_some_and(is_listed) {
            turns.remove(0);
        }
        all.extend(turns.into_iter().map(|mut turn| {
            turn.holds = false;
            turn.role = Role::Shared;
            turn
        }));
        Ok(all)
    }

    /// Asks a participant to give up its permit: the guard's [`revoked`](docent_core::Held::revoked)
    /// resolves, and it may ignore that.
    ///
    /// # Errors
    /// `InvalidInput` for a participant that still waits for its turn; `NoNode` when it has left, `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: asking again does no harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (semaphore, participant) = (self.clone(), participant.clone());
        async move { semaphore.ask_back(&participant).await }
    }

    async fn ask_back(&self, participant: &Participant) -> Result<(), Error> {
        if !participant.name.contains(LEASE) {
            let detail = format!("participant {:?} must have a permit to give up", participant.name);
            return Err(Error::invalid_input("revoke", detail));
        }
        self.permits.line().revoke(participant).await
    }

    /// Deletes the semaphore's nodes if nobody has a permit or waits: so the numbers of its lines begin anew,
    /// which is due when acquires fail with `SequenceExhausted`, and its fixed limit can be another one. A
    /// shared limit stays.
    ///
    /// # Errors
    /// `NotEmpty` when somebody has a permit or waits, or something else is below the semaphore's node;
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let semaphore = self.clone();
        async move {
            semaphore.permits.line().reset().await?;
            semaphore.turns.reset().await?;
            semaphore.turns.client().ensure_absent(semaphore.path()).await
        }
    }
}
