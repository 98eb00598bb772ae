use crate::store::{Backlog, ClaimedItem, Demand, Listing, Store, ensure_folder};
use crate::telemetry::KIND;
use docent_core::recipe::{ClaimResult, Hold, claim_all};
use docent_core::{Error, ErrorKind, Node};
use futures_util::future::try_join;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Claims in vain after which it looks what is claimed.
const LOOK_AFTER: usize = 3;

/// Items at the front of the backlog that a look compares with the claims. Each comparison costs time, and
/// the next claims are mostly of these items.
const NEXT: usize = 64;

/// The items that may be free, as far as this process knows, and claims of the lowest of them.
pub(super) struct FreeItems {
    store: Arc<Store>,
    backlog: Backlog,
    /// True until the first claim since the backlog was left.
    rested: bool,
}

impl FreeItems {
    pub(super) fn new(store: Arc<Store>) -> Self {
        let mut free = Self { store, backlog: Backlog::default(), rested: true };
        free.go_on();
        free
    }

    /// Leaves the backlog for when the task goes on, or runs again: a listing for each item would cost much.
    pub(super) fn leave(&mut self) {
        let left = std::mem::take(&mut self.backlog);
        *self.kept() = left;
        self.rested = true;
    }

    /// Takes the backlog back that was [left](Self::leave).
    pub(super) fn go_on(&mut self) {
        let kept = std::mem::take(&mut *self.kept());
        self.backlog = kept;
    }

    /// Begins to claim. A short backlog that was left is listed anew where others take items, too, so that
    /// fewer claims are in vain and what they give back is seen.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.rested) && !self.backlog.is_kept(Instant::now()) {
            self.backlog.clear();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Backlog> {
        self.store.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when it is time to list the items because one came back, or its time has come.
    pub(super) fn has_more(&mut self, now: Instant) -> bool {
        self.backlog.came_back |= self.store.desk.take_look_again();
        self.backlog.has_more(now)
    }

    /// True when the last listing is too old.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        self.backlog.is_old(now)
    }

    /// Time at which an item of the last listing may be handed out that could not be before.
    pub(super) fn next(&self) -> Option<Instant> {
        self.backlog.next()
    }

    /// Claims the lowest items that are free; none when none is. The last listing may be too old; `known`
    /// when nothing else can be free than it shows.
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
            && self.backlog.is_contended(Instant::now())
        {
            listed = self.look().await?;
        }
        loop {
            let size = &self.store.claim_size;
            let names = self.backlog.first((now + ahead).min(size.most()));
            if names.is_empty() {
                if listed {
                    return Ok(Vec::new());
                }
                self.list().await?;
                listed = true;
                continue;
            }
            // A stream that takes fast gets more than it asks for now.
            let most = if ahead > 0 { now.max(self.store.hand_out_size.get()) } else { now };
            let handed_out = if size.counts() { most.min(names.len()) } else { 0 };
            let claimed = match self.claim_these(&names, handed_out).await {
                // Fewer fit.
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
                    self.backlog.taken(claims.len());
                    self.store.claim_size.read();
                    let claims = names.into_iter().zip(claims).enumerate();
                    let claimed = claims.filter_map(|(index, (name, claim))| {
                        claimed_item(&self.store, name, claim, index < handed_out)
                    });
                    let claimed: Vec<_> = claimed.collect();
                    if !claimed.is_empty() {
                        return Ok(claimed);
                    }
                }
                // Another process claims the same items, or has finished this one since the listing: the next
                // attempt is for fewer.
                ClaimResult::Taken(index) | ClaimResult::NoNode(index) => {
                    (now, ahead) = (now.div_ceil(2), ahead / 2);
                    self.backlog.forget(&names[index]);
                    self.backlog.contend();
                    in_vain += 1;
                    if in_vain % LOOK_AFTER == 0 {
                        listed |= self.look().await?;
                    }
                }
                ClaimResult::NoParent(_) => {
                    ensure_folder(&self.store.client, &self.store.paths.claims).await?;
                }
            }
        }
    }

    /// Lists the items for the next claim, if it will want that.
    pub(super) async fn list_ahead(&mut self) -> Result<(), Error> {
        self.list().await?;
        self.backlog.listed_ahead();
        Ok(())
    }

    /// Takes note where items may have been claimed and not read. True when fewer of them might be read.
    fn is_about_reads(&self, error: &Error, items: usize) -> bool {
        let is_about_reads =
            matches!(error.kind(), ErrorKind::NoAuth | ErrorKind::Timeout | ErrorKind::OutcomeUnknown);
        if is_about_reads {
            self.store.claim_size.unread(items);
        }
        is_about_reads && items > 1
    }

    /// Claims items, and hands the first `handed_out` of them out.
    async fn claim_these(&mut self, names: &[String], handed_out: usize) -> Result<ClaimResult, Error> {
        let Store { client, paths, .. } = &*self.store;
        let request = |(index, name): (usize, &String)| paths.claim_request(name, index < handed_out);
        let requests: Vec<_> = names.iter().enumerate().map(request).collect();
        claim_all(client, &requests, &KIND, "take").await
    }

    /// Finds out what others claimed and ended since the last listing; true when the items were listed again,
    /// too.
    async fn look(&mut self) -> Result<bool, Error> {
        if !self.backlog.is_long() {
            self.list().await?;
            return Ok(true);
        }
        let marks = self.backlog.marks();
        let items = &self.store.items;
        let (claimed, gone) = try_join(items.claimed(), items.are_gone(&marks)).await?;
        self.backlog.forget_taken(&marks, |index, mark| gone[index] || claimed.contains(mark));
        self.backlog.forget_claimed(&claimed, NEXT);
        Ok(false)
    }

    async fn list(&mut self) -> Result<(), Error> {
        self.backlog.came_back = false;
        let listing = self.store.items.list().await?;
        self.fill(listing);
        Ok(())
    }

    /// Takes a listing.
    pub(super) fn fill(&mut self, listing: Listing) {
        let Store { aside, own, .. } = &*self.store;
        self.store.note(&listing);
        let Listing { items, claimed, .. } = listing;
        self.store.tell_depth(items.len());
        self.backlog.fill(items, &claimed, own, aside, self.store.time_of_day());
    }
}

/// True for an error of claims of which fewer might be made.
fn is_too_much(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::TooManyEphemerals)
}

fn claimed_item(
    store: &Store,
    name: String,
    (hold, node): (Hold, Option<Node>),
    handed_out: bool,
) -> Option<ClaimedItem> {
    // Somebody deleted the item by hand: its claim is dropped.
    let node = node?;
    tracing::debug!(path = %store.path, item = %name, fence = %hold.fence(), "item claimed");
    store.tell_head(node.stat.created);
    let own = Some(store.own.note(&name));
    Some(ClaimedItem { hold, name, node, handed_out, counted_since: 0, own })
}
