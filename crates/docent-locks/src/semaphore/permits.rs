use super::shared_limit::Limit;
use crate::AcquireError;
use crate::error::after_wait;
use docent_core::recipe::{HoldSet, Line, Ticket};
use docent_core::{Client, Error, ErrorKind, planted};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use std::sync::Arc;

/// Permits of a semaphore: the first few tickets of a line, of which the client that has the turn takes some.
#[derive(Debug, Clone)]
pub(crate) struct Permits {
    client: Client,
    leases: Line,
    limit: Limit,
}

/// Result of taking permits without waiting.
pub(crate) enum PermitsTaken {
    All(HoldSet),
    /// Fewer permits are free than were asked for.
    Full,
    /// The tickets were lost on the way.
    Gone,
}

impl Permits {
    pub(crate) fn new(client: &Client, leases: Line, limit: Limit) -> Self {
        Self { client: client.clone(), leases, limit }
    }

    /// The line that their tickets are in.
    pub(crate) fn line(&self) -> &Line {
        &self.leases
    }

    pub(crate) fn limit(&self) -> &Limit {
        &self.limit
    }

    /// True when so many seem to be free: looks, and writes nothing.
    pub(crate) async fn are_free(&self, permits: u32) -> Result<bool, Error> {
        let (limit, out) = (self.limit.get().await?, self.leases.count().await?);
        Ok(out + permits as usize <= limit as usize)
    }

    /// Takes tickets for so many permits and waits until they count; `None` when they are gone.
    pub(crate) async fn take(&self, permits: u32) -> Result<Option<HoldSet>, AcquireError> {
        let tickets = self.take_tickets(permits).await?;
        let limit = self.limit.get().await? as usize;
        let fit = listed_ahead(&tickets).is_some_and(|ahead| ahead < limit);
        if !fit && !self.until_they_fit(&tickets).await? {
            return Ok(None);
        }
        hold_all(tickets).await
    }

    /// As [`take`](Self::take), if they count now.
    pub(crate) async fn try_take(&self, permits: u32) -> Result<PermitsTaken, AcquireError> {
        let tickets = self.take_tickets(permits).await?;
        let ahead = match listed_ahead(&tickets) {
            // The reply that would have told was lost.
            None => self.look(&tickets).await?,
            ahead => ahead,
        };
        let Some(ahead) = ahead else { return Ok(PermitsTaken::Gone) };
        if ahead >= self.limit.get().await? as usize {
            return Ok(PermitsTaken::Full);
        }
        Ok(hold_all(tickets).await?.map_or(PermitsTaken::Gone, PermitsTaken::All))
    }

    async fn take_tickets(&self, permits: u32) -> Result<Vec<Ticket>, Error> {
        try_join_all((0..permits).map(|_| self.leases.take_ticket(None))).await
    }

    /// Number of tickets ahead of the last of `tickets` now; `None` when one of them is gone.
    async fn look(&self, tickets: &[Ticket]) -> Result<Option<usize>, Error> {
        match self.client.children(self.leases.path()).await {
            Ok(children) => Ok(self.ahead_of(tickets, &children.names)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the tickets are among the first, which permits that come free or a higher limit make them;
    /// false when they are gone.
    async fn until_they_fit(&self, tickets: &[Ticket]) -> Result<bool, Error> {
        let mut leases = self.client.watch_children(self.leases.path())?;
        let mut limits = self.limit.changes()?;
        let (mut names, mut limit): (Option<Vec<String>>, Option<usize>) = (None, None);
        loop {
            tokio::select! {
                children = leases.next() => match children.transpose()?.flatten() {
                    Some(children) => names = Some(children.names),
                    None => return Ok(false),
                },
                value = limits.next() => match value.transpose()? {
                    Some(value) => limit = Some(value as usize),
                    None => return Ok(false),
                },
            }
            let (Some(names), Some(seen)) = (&names, limit) else { continue };
            let Some(ahead) = self.ahead_of(tickets, names) else { return Ok(false) };
            if ahead >= seen {
                continue;
            }
            if planted!(StaleLimit) {
                return Ok(true);
            }
            // The limit may have been lowered before the permits came free that this listing lacks: its value
            // as read after the listing decides.
            let mut fresh = self.limit.changes()?;
            let Some(value) = fresh.next().await.transpose()? else { return Ok(false) };
            if ahead < value as usize {
                return Ok(true);
            }
            (limits, limit) = (fresh, Some(value as usize));
        }
    }

    /// Number of tickets ahead of the last of `tickets`, by a listing; `None` when one of them is gone.
    fn ahead_of(&self, tickets: &[Ticket], names: &[String]) -> Option<usize> {
        let ahead = tickets.iter().map(|ticket| self.leases.ahead_of(ticket, names));
        ahead.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

/// Number of tickets ahead of the last of `tickets` by the listings that were made with them, if all of these
/// came.
fn listed_ahead(tickets: &[Ticket]) -> Option<usize> {
    tickets.iter().map(Ticket::ahead).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// Holds what the tickets are for; `None` when one is gone.
async fn hold_all(tickets: Vec<Ticket>) -> Result<Option<HoldSet>, AcquireError> {
    match try_join_all(tickets.into_iter().map(Ticket::hold_regardless)).await {
        Ok(holds) => Ok(HoldSet::together(holds.into_iter().map(Arc::new).collect()).await?),
        Err(error) => after_wait(error).map_or(Ok(None), Err),
    }
}
