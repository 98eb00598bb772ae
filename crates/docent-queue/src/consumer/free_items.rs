use crate::store::{Backlog, ClaimedItem, Demand, Listing, MOST, Store, ensure_folder};
use crate::telemetry::KIND;
use docent_core::recipe::{ClaimResult, Hold, claim_all, full_path};
use docent_core::{Error, ErrorKind, Node};
use futures_util::future::try_join;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Number of failed claims after which the existing claims are read.
const REFRESH_AFTER: usize = 3;

/// Number of items at the front of the backlog that are compared with the existing claims. Each comparison
/// costs time, and the next claims mostly concern these items.
const NEXT: usize = 64;

/// Items that may be free, as far as this process knows, and claims of the lowest of them.
pub(super) struct FreeItems {
    store: Arc<Store>,
    pub(super) backlog: Backlog,
    /// Whether the backlog has not been used for a claim since it was saved.
    unused: bool,
}

impl FreeItems {
    pub(super) fn new(store: Arc<Store>) -> Self {
        let mut free = Self { store, backlog: Backlog::default(), unused: true };
        free.restore();
        free
    }

    /// Saves the backlog for the next run of the task, because a listing for each item would be expensive.
    pub(super) fn save(&mut self) {
        let backlog = std::mem::take(&mut self.backlog);
        *self.saved() = backlog;
        self.unused = true;
    }

    /// Takes back the backlog that was [saved](Self::save).
    pub(super) fn restore(&mut self) {
        let saved = std::mem::take(&mut *self.saved());
        self.backlog = saved;
    }

    /// Starts to claim. A short backlog that was saved is discarded if other processes take items too. A new
    /// listing then avoids claims in vain and shows returned items.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.unused) && !self.backlog.is_kept(Instant::now()) {
            self.backlog.ready.clear();
        }
    }

    fn saved(&self) -> MutexGuard<'_, Backlog> {
        self.store.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the items have to be listed because an item came back, or its time has come.
    pub(super) fn has_more(&mut self, now: Instant) -> bool {
        self.backlog.has_returned |= self.store.dispatcher.take_listing_request();
        self.backlog.has_more(now)
    }

    /// Claims the lowest free items; returns no items if none is free. `is_old` means that the last listing
    /// is too old, and `known` that no items can be free except those that it shows.
    pub(super) async fn claim(
        &mut self,
        demand: Demand,
        is_old: bool,
        known: bool,
    ) -> Result<Vec<ClaimedItem>, Error> {
        let (mut now, mut ahead) = (demand.now, demand.ahead);
        let (mut listed, mut in_vain) = (known || is_old, 0);
        if is_old {
            self.list().await?;
        } else if !self.backlog.take_ahead(Instant::now())
            && !known
            && self.backlog.ready.is_contended(Instant::now())
        {
            listed = self.refresh().await?;
        }
        loop {
            let size = self.store.claim_size.get();
            let names = self.backlog.ready.first((now + ahead).min(size));
            if names.is_empty() {
                if listed {
                    return Ok(Vec::new());
                }
                self.list().await?;
                listed = true;
                continue;
            }
            // A stream that takes items quickly gets more items than it currently asks for.
            let most = if ahead > 0 { now.max(self.store.hand_out_size.get()) } else { now };
            // A smaller claim does not count as a delivery.
            let handed_out = if size == MOST { most.min(names.len()) } else { 0 };
            let claimed = match self.claim_these(&names, handed_out).await {
                // Fewer items may fit into one request.
                Err(error) if names.len() > 1 && is_too_much(&error) => {
                    now = now.min(names.len()).div_ceil(2);
                    ahead = (names.len() / 2).saturating_sub(now);
                    continue;
                }
                Err(error) => {
                    let may_be_fewer = self.is_about_reads(&error, names.len());
                    if may_be_fewer && error.kind() == ErrorKind::NoAuth {
                        continue;
                    }
                    return Err(error);
                }
                Ok(claimed) => claimed,
            };
            match claimed {
                ClaimResult::All(claims) => {
                    self.backlog.ready.taken(claims.len());
                    self.store.claim_size.grow(MOST);
                    let claims = names.into_iter().zip(claims).enumerate();
                    let claimed = claims.filter_map(|(index, (name, claim))| {
                        claimed_item(&self.store, name, claim, index < handed_out)
                    });
                    let claimed: Vec<_> = claimed.collect();
                    if !claimed.is_empty() {
                        return Ok(claimed);
                    }
                }
                // Another process claimed one of the items, or has finished it since the listing. The next
                // attempt claims fewer items.
                ClaimResult::Taken(index) | ClaimResult::NoNode(index) => {
                    (now, ahead) = (now.div_ceil(2), ahead / 2);
                    self.backlog.ready.forget(&names[index]);
                    self.backlog.ready.contend();
                    in_vain += 1;
                    if in_vain % REFRESH_AFTER == 0 {
                        listed |= self.refresh().await?;
                    }
                }
                ClaimResult::NoParent(_) => {
                    ensure_folder(&self.store.client, &self.store.paths.claims).await?;
                }
            }
        }
    }

    /// Lists the items in advance for the next claim.
    pub(super) async fn list_ahead(&mut self) -> Result<(), Error> {
        self.list().await?;
        self.backlog.listed_ahead();
        Ok(())
    }

    /// Records that items may have been claimed but not read. Returns whether claiming fewer items may help.
    fn is_about_reads(&self, error: &Error, items: usize) -> bool {
        let is_about_reads =
            matches!(error.kind(), ErrorKind::NoAuth | ErrorKind::Timeout | ErrorKind::OutcomeUnknown);
        if is_about_reads {
            self.store.claim_size.set(items / 2);
        }
        is_about_reads && items > 1
    }

    /// Claims items, and hands out the first `handed_out` of them.
    async fn claim_these(&mut self, names: &[String], handed_out: usize) -> Result<ClaimResult, Error> {
        let Store { client, paths, .. } = &*self.store;
        let request = |(index, name): (usize, &String)| paths.claim_request(name, index < handed_out);
        let requests: Vec<_> = names.iter().enumerate().map(request).collect();
        claim_all(client, &requests, &KIND, "take").await
    }

    /// Finds out which items other processes claimed and finished since the last listing. Returns whether the
    /// items were listed again.
    async fn refresh(&mut self) -> Result<bool, Error> {
        if !self.backlog.ready.is_long() {
            self.list().await?;
            return Ok(true);
        }
        let marks = self.backlog.ready.marks();
        let items = &self.store.items;
        let (claimed, deleted) = try_join(items.claimed(), items.are_deleted(&marks)).await?;
        self.backlog.ready.forget_taken(&marks, |index, mark| deleted[index] || claimed.contains(mark));
        self.backlog.ready.forget_claimed(&claimed, NEXT);
        Ok(false)
    }

    async fn list(&mut self) -> Result<(), Error> {
        self.backlog.has_returned = false;
        let listing = self.store.items.list().await?;
        self.fill(listing);
        Ok(())
    }

    /// Takes over a listing.
    pub(super) fn fill(&mut self, listing: Listing) {
        let Store { skipped, own, .. } = &*self.store;
        self.store.note(&listing);
        let Listing { items, claimed, .. } = listing;
        self.store.gauges.depth(items.len());
        self.backlog.fill(items, &claimed, own, skipped, self.store.time_of_day());
    }
}

/// Returns whether the error may be avoided by claiming fewer items.
fn is_too_much(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::TooManyEphemerals)
}

fn claimed_item(
    store: &Store,
    name: String,
    (hold, node): (Hold, Option<Node>),
    handed_out: bool,
) -> Option<ClaimedItem> {
    // The item was deleted by hand, so its claim is dropped.
    let node = node?;
    // Event: This process claimed an item of a queue.
    tracing::debug!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), item = %name, fence = %hold.fence(), "claimed an item");
    store.gauges.head(node.stat.created);
    let own = Some(store.own.note(&name));
    Some(ClaimedItem { hold, name, node, handed_out, counted_since: 0, own })
}
