//! Claiming the lowest items that are free.

use crate::backlog::Backlog;
use crate::guard::{Mine, Taken};
use crate::layout::QueueLayout;
use crate::store::Store;
use docent_core::recipe::{ClaimResult, Hold, claim_all};
use docent_core::{Error, ErrorKind, Node, Stat};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

/// Items looked at in one trip after a collision, at first and at most.
const LOOK: usize = 8;
const LOOK_FAR: usize = 64;

impl Store {
    /// Claims the lowest items that are free, up to `count` of them in one write; none when none is free.
    /// With `look` most items are expected to be claimed already, and are looked at first.
    ///
    /// One task of a process at a time does so, and tries items in their order: so the first claims of items
    /// are in order, too.
    pub(crate) async fn claim(self: &Arc<Self>, count: usize, look: bool) -> Result<Vec<Taken>, Error> {
        // One task claims at a time: of two claims under way a lost link might repeat the later one first,
        // and first claims would be out of order (decision 8).
        let mut backlog = self.backlog.lock().await;
        let given_back = self.given_back.swap(false, Ordering::AcqRel);
        let mut listed = look || given_back || backlog.is_old(Instant::now());
        if listed {
            backlog.fill(self.candidates(self.list().await?), Instant::now());
        }
        let (mut look, mut far) = (look, LOOK);
        loop {
            if backlog.is_empty() {
                if listed {
                    return Ok(Vec::new());
                }
                listed = true;
                backlog.fill(self.candidates(self.list().await?), Instant::now());
                continue;
            }
            if look {
                look = false;
                let free = self.look(&backlog, far).await?;
                backlog.keep(&free);
                far = (far * 2).min(LOOK_FAR);
                if !free.contains(&true) {
                    look = true;
                    continue;
                }
            }
            let names = backlog.first(count);
            let wanted: Vec<_> = names.iter().map(|name| self.places.wanted(name)).collect();
            match claim_all(&self.client, &wanted, "queue").await? {
                ClaimResult::All(claims) => {
                    backlog.taken(claims.len());
                    let taken: Vec<_> =
                        names.into_iter().zip(claims).filter_map(|one| self.taken(one)).collect();
                    if !taken.is_empty() {
                        return Ok(taken);
                    }
                }
                // Another consumer claims the same items: the next ones are looked at first, to meet no more
                // of its claims.
                ClaimResult::Taken(index) => {
                    backlog.forget(index);
                    look = true;
                }
                // The item is gone, unless claims have a folder of their own and that is missing.
                ClaimResult::NoParent(index) => {
                    if !self.made_lock_folder().await? {
                        backlog.forget(index);
                    }
                }
            }
        }
    }

    fn taken(self: &Arc<Self>, (name, (guard, node)): (String, (Hold, Option<Node>))) -> Option<Taken> {
        // Where claims are not below their items, the item may be gone, and the claim is dropped.
        let Node { data, stat, .. } = node?;
        tracing::debug!(path = %self.path, item = %name, fence = %guard.fence(), "item claimed");
        let deliveries = self.places.counts_claims().then(|| children_ever(&stat));
        let mine = Mine::new(self, name, &guard);
        Some(Taken { guard, mine, node: data, deliveries })
    }

    /// Looks which of the first `count` are free, as far as the server knows that this client talks to.
    async fn look(&self, backlog: &Backlog, count: usize) -> Result<Vec<bool>, Error> {
        let names = backlog.first(count);
        let looks = names.iter().map(|name| async {
            Ok(match &self.places.layout {
                QueueLayout::Native => {
                    let item = self.client.exists(&self.places.item(name)).await?;
                    item.is_some_and(|stat| stat.num_children == 0)
                }
                QueueLayout::Curator { .. } => self.client.exists(&self.places.claim(name)).await?.is_none(),
            })
        });
        join_all(looks).await.into_iter().collect()
    }

    /// Creates the folder of the claims, where that is a place of its own and missing; false when that is not
    /// why there is no parent.
    async fn made_lock_folder(&self) -> Result<bool, Error> {
        let QueueLayout::Curator { lock_path } = &self.places.layout else { return Ok(false) };
        if self.client.exists(lock_path).await?.is_some() {
            return Ok(false);
        }
        match self.ensure_folder(lock_path).await {
            Err(error) if error.kind() == ErrorKind::NodeExists => Ok(true),
            result => result.map(|()| true),
        }
    }
}

/// Number of children that a node ever had. For an item that is the number of its claims: each claim is one
/// child that came, and when it ended one that went.
pub(crate) fn children_ever(node: &Stat) -> u32 {
    // `cversion` counts children that came and children that went, so half of the sum is the number of claims
    // (decision 8).
    let children = u32::try_from(node.num_children).unwrap_or(u32::MAX);
    node.cversion.cast_unsigned().wrapping_add(children) / 2
}
