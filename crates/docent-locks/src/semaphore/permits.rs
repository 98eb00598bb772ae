use super::node::SemaphoreNode;
use super::shared_limit::Limit;
use crate::AcquireError;
use crate::error::after_wait;
use docent_core::recipe::{Hold, HoldSet, Line, TicketBatch};
use docent_core::{Client, Error, ErrorKind, planted};
use futures_util::StreamExt;
use futures_util::future::join;
use std::sync::Arc;

/// Permits of a semaphore: the first few tickets of a line, of which the client that has the turn takes some.
#[derive(Debug, Clone)]
pub(crate) struct Permits {
    client: Client,
    node: SemaphoreNode,
    leases: Line,
    limit: Limit,
}

/// Result of taking permits without waiting.
pub(crate) enum PermitsTaken {
    All(HoldSet),
    /// Fewer permits are free than were asked for.
    Full,
    /// The tickets, or the turn, were lost on the way.
    Gone,
}

impl Permits {
    pub(crate) fn new(client: &Client, node: SemaphoreNode, leases: Line, limit: Limit) -> Self {
        Self { client: client.clone(), node, leases, limit }
    }

    /// The line that their tickets are in.
    pub(crate) fn line(&self) -> &Line {
        &self.leases
    }

    pub(crate) fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Looks, before anything is made, whether so many can ever be taken, as far as that is known.
    pub(crate) async fn look(&self, permits: u32) -> Result<(), Error> {
        self.node.look().await?;
        match &self.limit {
            Limit::Shared(_) if permits > 1 => self.limit.check(permits, self.limit.get().await?),
            _ => Ok(()),
        }
    }

    /// True when so many seem to be free: looks, and writes nothing.
    pub(crate) async fn are_free(&self, permits: u32) -> Result<bool, Error> {
        let (limit, out) = (self.limit.get().await?, self.leases.count().await?);
        self.limit.check(permits, limit)?;
        Ok(out + permits as usize <= limit as usize)
    }

    /// Takes tickets for so many permits and waits until they count; `None` when they are gone.
    pub(crate) async fn take(&self, permits: u32, turn: &Hold) -> Result<Option<HoldSet>, AcquireError> {
        self.limit.admits(permits).await?;
        let Some(batch) = self.take_tickets(permits, turn).await? else { return Ok(None) };
        let limit = self.limit.get().await?;
        self.limit.check(permits, limit)?;
        let fit = batch.ahead().is_some_and(|ahead| ahead < limit as usize);
        if !fit && !self.until_they_fit(&batch, permits).await? {
            return Ok(None);
        }
        hold_all(batch).await
    }

    /// As [`take`](Self::take), if they count now.
    pub(crate) async fn try_take(&self, permits: u32, turn: &Hold) -> Result<PermitsTaken, AcquireError> {
        let Some(batch) = self.take_tickets(permits, turn).await? else { return Ok(PermitsTaken::Gone) };
        let ahead = match batch.ahead() {
            // The reply that would have told was lost.
            None => self.look_at(&batch).await?,
            ahead => ahead,
        };
        let Some(ahead) = ahead else { return Ok(PermitsTaken::Gone) };
        if ahead >= self.limit.get().await? as usize {
            return Ok(PermitsTaken::Full);
        }
        Ok(hold_all(batch).await?.map_or(PermitsTaken::Gone, PermitsTaken::All))
    }

    /// Takes the tickets, and looks in the same trip whether others use the semaphore's node as this one
    /// does. `None` when the turn is lost.
    async fn take_tickets(&self, permits: u32, turn: &Hold) -> Result<Option<TicketBatch>, AcquireError> {
        let (batch, node) = join(self.leases.take_tickets(permits, None), self.node.read()).await;
        let batch = batch?;
        // It counts only if it was asked for after the folder of the tickets was there.
        let node = if batch.at_once() { node? } else { self.node.read().await? };
        match Box::pin(self.node.settle(node, turn)).await {
            Ok(settled) => Ok(settled.then_some(batch)),
            Err(error) => {
                drop(batch);
                // A folder that is left behind would keep contenders of the other kind out.
                if matches!(&error, AcquireError::Core(error) if error.kind() == ErrorKind::MixedKinds) {
                    let _ = Box::pin(self.leases.reset()).await;
                }
                Err(error)
            }
        }
    }

    /// Number of tickets ahead of the last of the batch now; `None` when one of it is gone.
    async fn look_at(&self, batch: &TicketBatch) -> Result<Option<usize>, Error> {
        match self.client.children(self.leases.path()).await {
            Ok(children) => batch.ahead_in(&children.names),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the tickets are among the first, which permits that come free or a higher limit make them;
    /// false when they are gone.
    ///
    /// # Errors
    /// Also when the limit is lowered below the number of `permits`: as long as this client has its turn,
    /// nobody else gets what is free.
    async fn until_they_fit(&self, batch: &TicketBatch, permits: u32) -> Result<bool, Error> {
        let mut leases = self.client.watch_children(self.leases.path())?;
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
            // The limit may have been lowered before the permits came free that this listing lacks: its value
            // as read after the listing decides.
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

/// Holds what the tickets are for; `None` when one is gone.
async fn hold_all(batch: TicketBatch) -> Result<Option<HoldSet>, AcquireError> {
    match batch.hold().await {
        Ok(holds) => {
            let set = HoldSet::new(holds.into_iter().map(Arc::new).collect())?;
            Ok(set.is_held().then_some(set))
        }
        Err(error) => after_wait(error).map_or(Ok(None), Err),
    }
}
