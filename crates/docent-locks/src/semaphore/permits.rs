use super::node::SemaphoreNode;
use super::shared_limit::Limit;
use crate::AcquireError;
use crate::error::after_wait;
use docent_core::recipe::{Hold, HoldSet, Line, TicketBatch, if_exists};
use docent_core::{Error, ErrorKind, planted};
use futures_util::StreamExt;
use futures_util::future::join;
use std::sync::Arc;

/// Permits of a semaphore: the first tickets of a line, up to the limit. The client that has the turn takes
/// tickets in this line.
#[derive(Debug, Clone)]
pub(crate) struct Permits {
    node: SemaphoreNode,
    leases: Line,
    limit: Limit,
}

/// Result of taking permits without waiting.
pub(crate) enum PermitsTaken {
    All(HoldSet),
    /// Fewer permits are free than were requested.
    Full,
    /// The tickets or the turn were lost meanwhile.
    Lost,
}

impl Permits {
    pub(crate) fn new(node: SemaphoreNode, leases: Line, limit: Limit) -> Self {
        Self { node, leases, limit }
    }

    /// Returns the line that contains the permits' tickets.
    pub(crate) fn line(&self) -> &Line {
        &self.leases
    }

    pub(crate) fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Checks, before any node is created, whether that many permits can ever be taken, as far as that is
    /// known.
    pub(crate) async fn check_limit(&self, permits: u32) -> Result<(), Error> {
        self.node.check_use().await?;
        match &self.limit {
            Limit::Shared(_) if permits > 1 => self.limit.check(permits, self.limit.get().await?),
            _ => Ok(()),
        }
    }

    /// Returns whether that many permits appear to be free. Only reads.
    pub(crate) async fn are_free(&self, permits: u32) -> Result<bool, Error> {
        let (limit, in_use) = (self.limit.get().await?, self.leases.count().await?);
        self.limit.check(permits, limit)?;
        Ok(in_use + permits as usize <= limit as usize)
    }

    /// Takes tickets for `permits` permits and waits until they are within the limit. Returns `None` if the
    /// tickets are lost.
    pub(crate) async fn take(&self, permits: u32, turn: &Hold) -> Result<Option<HoldSet>, AcquireError> {
        self.limit.admits(permits).await?;
        let Some(batch) = self.take_tickets(permits, turn).await? else { return Ok(None) };
        let limit = self.limit.get().await?;
        self.limit.check(permits, limit)?;
        let fit = batch.ahead().is_some_and(|ahead| ahead < limit as usize);
        if !fit && !self.until_within_limit(&batch, permits).await? {
            return Ok(None);
        }
        hold_all(batch).await
    }

    /// Takes permits like [`take`](Self::take), if they are within the limit now.
    pub(crate) async fn try_take(&self, permits: u32, turn: &Hold) -> Result<PermitsTaken, AcquireError> {
        let Some(batch) = self.take_tickets(permits, turn).await? else { return Ok(PermitsTaken::Lost) };
        let ahead = match batch.ahead() {
            // The reply that would have contained the position was lost.
            None => self.position_of(&batch).await?,
            ahead => ahead,
        };
        let Some(ahead) = ahead else { return Ok(PermitsTaken::Lost) };
        if ahead >= self.limit.get().await? as usize {
            return Ok(PermitsTaken::Full);
        }
        Ok(hold_all(batch).await?.map_or(PermitsTaken::Lost, PermitsTaken::All))
    }

    /// Takes the tickets, and checks in the same round trip whether other clients use the semaphore's node in
    /// the same way. Returns `None` if the turn is lost.
    async fn take_tickets(&self, permits: u32, turn: &Hold) -> Result<Option<TicketBatch>, AcquireError> {
        let (batch, node) = join(self.leases.take_tickets(permits, None), self.node.read()).await;
        let batch = batch?;
        // The read counts only if it was sent after the folder of the tickets existed.
        let node = if batch.at_once() { node? } else { self.node.read().await? };
        match Box::pin(self.node.settle(node, turn)).await {
            Ok(settled) => Ok(settled.then_some(batch)),
            Err(error) => {
                drop(batch);
                // A folder that is left behind would block contenders of the other kind.
                if matches!(&error, AcquireError::Core(error) if error.kind() == ErrorKind::MixedKinds) {
                    let _ = Box::pin(self.leases.reset()).await;
                }
                Err(error)
            }
        }
    }

    /// Returns the current number of tickets ahead of the last ticket of the batch, or `None` if one of the
    /// batch's tickets was deleted.
    async fn position_of(&self, batch: &TicketBatch) -> Result<Option<usize>, Error> {
        match if_exists(self.leases.client().children(self.leases.path()).await)? {
            Some(children) => batch.ahead_in(&children.names),
            None => Ok(None),
        }
    }

    /// Waits until released permits or a higher limit bring the tickets within the limit. Returns false if
    /// the tickets are lost.
    ///
    /// # Errors
    /// The errors of a check, even if the limit is lowered below `permits` while waiting. While this client
    /// has its turn, no other client gets the free permits.
    async fn until_within_limit(&self, batch: &TicketBatch, permits: u32) -> Result<bool, Error> {
        let mut leases = self.leases.client().watch_children(self.leases.path())?;
        let mut limits = self.limit.changes()?;
        let (mut names, mut limit): (Option<Vec<String>>, Option<u32>) = (None, None);
        loop {
            tokio::select! {
                children = leases.next() => match children.transpose()?.flatten() {
                    Some(children) => names = Some(children.names),
                    None => return Ok(false),
                },
                value = limits.next() => match value.transpose()? {
                    Some(value) => limit = Some(value),
                    None => return Ok(false),
                },
            }
            let (Some(names), Some(seen)) = (&names, limit) else { continue };
            self.limit.check(permits, seen)?;
            let Some(ahead) = batch.ahead_in(names)? else { return Ok(false) };
            if ahead >= seen as usize {
                continue;
            }
            if planted!(StaleLimit) {
                return Ok(true);
            }
            // The limit may have been lowered before permits that this listing lacks were released. Therefore
            // the limit that is read after the listing decides.
            let mut fresh = self.limit.changes()?;
            let Some(value) = fresh.next().await.transpose()? else { return Ok(false) };
            self.limit.check(permits, value)?;
            if ahead < value as usize {
                return Ok(true);
            }
            (limits, limit) = (fresh, Some(value));
        }
    }
}

/// Acquires the holds of the tickets. Returns `None` if a ticket was deleted.
async fn hold_all(batch: TicketBatch) -> Result<Option<HoldSet>, AcquireError> {
    match batch.hold().await {
        Ok(holds) => {
            let set = HoldSet::new(holds.into_iter().map(Arc::new).collect())?;
            Ok(set.is_held().then_some(set))
        }
        Err(error) => after_wait(error).map_or(Ok(None), Err),
    }
}
