//! Participants of a semaphore.

use super::Semaphore;
use super::semaphore::LEASE;
use docent_core::recipe::InOperation;
use docent_core::{Error, Participant, Role};
use std::future::Future;

impl Semaphore {
    /// Returns all clients that have a ticket: one entry for each permit that is held or about to be held,
    /// then the clients that wait for their turn.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, and `InvalidInput` if the shared limit is not a number.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let semaphore = self.clone();
        async move { semaphore.all_participants().await.in_operation("participants") }
    }

    async fn all_participants(&self) -> Result<Vec<Participant>, Error> {
        let (limit, leases) = (self.permits.limit().get().await?, self.permits.line().participants().await?);
        let mut turns = self.turns.participants().await?;
        let mut all = leases;
        for (position, participant) in all.iter_mut().enumerate() {
            participant.holds = position < limit as usize;
            participant.role = Role::Shared;
        }
        // The client that has the turn already has its tickets for permits, so it is listed only once.
        let is_listed =
            |turn: &Participant| all.iter().any(|lease| lease.session_id == turn.session_id && !lease.holds);
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

    /// Asks a participant to give up its permit: the guard's [`revoked`](docent_core::Held::revoked) future
    /// resolves. The participant may ignore the request.
    ///
    /// # Errors
    /// `InvalidInput` for a participant that still waits for its turn; `NoNode` if it has left; `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The request can be repeated without harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (semaphore, participant) = (self.clone(), participant.clone());
        async move { semaphore.request_release(&participant).await.in_operation("revoke") }
    }

    async fn request_release(&self, participant: &Participant) -> Result<(), Error> {
        if !participant.name.contains(LEASE) {
            let detail = format!("participant {:?} must have a permit to give up", participant.name);
            return Err(Error::invalid_input("revoke", detail));
        }
        self.permits.line().revoke(participant).await
    }

    /// Deletes the semaphore's nodes if no client has a permit or waits. This resets the sequence numbers of
    /// its lines, which is necessary when acquires fail with `SequenceExhausted`. Afterwards the semaphore
    /// may have another fixed limit. A shared limit is kept.
    ///
    /// # Errors
    /// `NotEmpty` if a client has a permit or waits, or if the semaphore's node has other children; `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The reset can be repeated without harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let semaphore = self.clone();
        async move { semaphore.delete_nodes().await.in_operation("reset") }
    }

    async fn delete_nodes(&self) -> Result<(), Error> {
        self.permits.line().reset().await?;
        self.turns.reset().await?;
        self.turns.client().ensure_absent(self.path()).await
    }
}
