//! Contenders ahead in a line, for callers whose turn did not come and who report why.

use super::name::is_in_danger_zone;
use super::participant::{names, names_by, of_node, read, read_node};
use super::{Line, Participant};
use crate::error::Error;
use crate::guard::{Fence, HoldState};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;

/// Contenders ahead of a place in a line, as of one listing.
#[derive(Debug, Clone)]
pub struct Ahead {
    /// Name of the first contender in the line.
    first: Option<String>,
    count: Option<usize>,
}

impl Ahead {
    /// Number of contenders that the place waits for, including the holder; `None` if the sequence numbers
    /// give no reliable order, or if the ticket is not in the line.
    pub fn count(&self) -> Option<usize> {
        self.count
    }

    /// Name of the first contender in the line: the holder, unless its hold was lost.
    pub(super) fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Returns true if no contender is ahead.
    pub fn is_empty(&self) -> bool {
        self.count == Some(0)
    }
}

/// Holds of this client for which its own tickets wait.
#[derive(Debug, Clone, Copy)]
pub struct OwnHolds {
    /// Number of these holds: one for a mutex, one for each permit of a semaphore.
    pub count: usize,
    /// Fence of the hold that began last.
    pub fence: Fence,
    /// Time since that hold began, or since its [lent](crate::recipe::Hold::lend) hold began.
    pub held_for: Duration,
}

impl Line {
    /// Returns the holds of this client in this line, if there are any for which new tickets of this line
    /// wait. Sends no request.
    pub fn own_holds(&self) -> Option<OwnHolds> {
        let generation = self.client().shared().generation();
        let blocks = |held: &&Arc<HoldState>| {
            let (folder, name) = held.path().rsplit_once('/').unwrap_or_default();
            folder == self.full_path() && self.contender(name).is_some_and(|(_, role)| self.waits_for(role))
        };
        let held = generation.held.all();
        let own = held.iter().filter(blocks).filter_map(|held| Some((held.in_use_since()?, held.fence)));
        let own: Vec<_> = own.collect();
        let (since, fence) = own.iter().copied().max_by_key(|(since, _)| *since)?;
        Some(OwnHolds { count: own.len(), fence, held_for: generation.clock.now().since(since) })
    }

    /// Lists the contenders ahead of the ticket with this name, or of a ticket that would be taken now, as
    /// the server of this client's connection knows them.
    ///
    /// # Errors
    /// Without a ticket, `MixedKinds` if a new ticket would be refused; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn ahead(&self, ticket: Option<&str>) -> Result<Ahead, Error> {
        self.ahead_listed(ticket, &names(self).await?).await
    }

    pub(super) async fn ahead_listed(&self, ticket: Option<&str>, names: &[String]) -> Result<Ahead, Error> {
        if ticket.is_none() {
            self.refuse_all_other_kinds(None, names).await?;
        }
        Ok(self.ahead_among(ticket, names))
    }

    fn ahead_among(&self, ticket: Option<&str>, names: &[String]) -> Ahead {
        let contenders = || names.iter().filter_map(|name| Some((self.contender(name)?, name)));
        let own = ticket.and_then(|ticket| self.contender(ticket)).map(|(number, _)| number);
        let is_ordered = !contenders().any(|((number, _), _)| is_in_danger_zone(number));
        let is_listed = ticket.is_none_or(|ticket| names.iter().any(|name| name == ticket));
        let blocks = |number, role| self.waits_for(role) && own.is_none_or(|own| number < own);
        let count = contenders().filter(|((number, role), _)| blocks(*number, *role)).count();
        let counts = is_listed && (is_ordered || ticket.is_none());
        let first = contenders().min().map(|(_, name)| name.clone()).filter(|_| is_ordered);
        Ahead { first, count: counts.then_some(count) }
    }

    /// Reads the first contender of `ahead`: the holder, unless its hold was lost. Returns `None` if the line
    /// was empty or that contender has left since the listing.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn holder(&self, ahead: &Ahead) -> Result<Option<Participant>, Error> {
        let Some(first) = &ahead.first else { return Ok(None) };
        let found = read(self, first.clone(), self.client().deadline()).await?;
        Ok(found.map(|first| Participant { holds: true, ..first }))
    }
}

// Shared reads of a line: if many callers give up at the same time, one request serves all of them.
impl Line {
    /// Same as [`ahead`](Self::ahead), but shares the answer of a read that the same client already has in
    /// flight. The answer may then be older than the call, so this method suits reports of the last known
    /// state. Clones that are bound to a session, or have another timeout, share no reads with other handles.
    ///
    /// # Errors
    /// Same as [`ahead`](Self::ahead).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn ahead_coalesced(&self, ticket: Option<&str>) -> Result<Ahead, Error> {
        let lines = &self.client().shared().coalesced_reads.lines;
        let names = lines.join_or_start(self.client().key(self.full_path().to_owned()), || {
            let line = self.clone();
            async move { Ok(names_by(&line, line.client().deadline()).await?.into()) }.boxed()
        });
        match names.await {
            Some(names) => self.ahead_listed(ticket, &names?).await,
            None => self.ahead(ticket).await,
        }
    }

    /// Same as [`holder`](Self::holder), but shares reads in flight like
    /// [`ahead_coalesced`](Self::ahead_coalesced).
    ///
    /// # Errors
    /// Same as [`holder`](Self::holder).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn holder_coalesced(&self, ahead: &Ahead) -> Result<Option<Participant>, Error> {
        let Some(first) = ahead.first() else { return Ok(None) };
        let nodes = &self.client().shared().coalesced_reads.nodes;
        let key = self.client().key(format!("{}/{first}", self.full_path()));
        let node = nodes.join_or_start(key, || {
            let (line, name) = (self.clone(), first.to_owned());
            async move { read_node(&line, &name, line.client().deadline()).await }.boxed()
        });
        let Some(node) = node.await else { return self.holder(ahead).await };
        let found = node?.and_then(|found| of_node(self, first.to_owned(), found));
        Ok(found.map(|first| Participant { holds: true, ..first }))
    }
}
