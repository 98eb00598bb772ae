//! Claiming the lowest items that are free.

use super::ClaimedItem;
use crate::layout::QueueLayout;
use crate::store::{Backlog, LocalClaim, Store, children_ever, ensure_folder};
use docent_core::recipe::{ClaimResult, Hold, claim_all};
use docent_core::{Error, ErrorKind, Node};
use futures_util::future::join_all;
use std::sync::Arc;
use tokio::time::Instant;

/// Items looked at in one trip after a collision, at first and at most.
const LOOK: usize = 8;
const LOOK_FAR: usize = 64;

/// Claims the lowest items that are free, up to `count` of them in one write; none when none is free. With
/// `look` most items are expected to be claimed already, and are looked at first.
///
/// One task of a process at a time does so, and tries items in their order: so the first claims of items are
/// in order, too.
pub(crate) async fn claim_lowest(
    store: &Arc<Store>,
    count: usize,
    look: bool,
) -> Result<Vec<ClaimedItem>, Error> {
    // One task claims at a time: of two claims under way a lost link might repeat the later one first, and
    // first claims would be out of order (decision 8).
    let mut backlog = store.backlog.lock().await;
    let given_back = store.local.take_given_back();
    let mut listed = look || given_back || backlog.is_old(Instant::now());
    if listed {
        backlog.fill(store.local.candidates(store.items.list().await?), Instant::now());
    }
    let (mut look, mut far) = (look, LOOK);
    loop {
        if backlog.is_empty() {
            if listed {
                return Ok(Vec::new());
            }
            listed = true;
            backlog.fill(store.local.candidates(store.items.list().await?), Instant::now());
            continue;
        }
        if look {
            look = false;
            let free = are_free(store, &backlog, far).await?;
            backlog.keep(&free);
            far = (far * 2).min(LOOK_FAR);
            if !free.contains(&true) {
                look = true;
                continue;
            }
        }
        let names = backlog.first(count);
        let wanted: Vec<_> = names.iter().map(|name| store.paths.claim_request(name)).collect();
        match claim_all(&store.client, &wanted, "queue").await? {
            ClaimResult::All(claims) => {
                backlog.taken(claims.len());
                let taken: Vec<_> =
                    names.into_iter().zip(claims).filter_map(|one| claimed_item(store, one)).collect();
                if !taken.is_empty() {
                    return Ok(taken);
                }
            }
            // Another consumer claims the same items: the next ones are looked at first, to meet no more of
            // its claims.
            ClaimResult::Taken(index) => {
                backlog.forget(index);
                look = true;
            }
            // The item is gone, unless claims have a folder of their own and that is missing.
            ClaimResult::NoParent(index) => {
                if !made_lock_folder(store).await? {
                    backlog.forget(index);
                }
            }
        }
    }
}

fn claimed_item(
    store: &Arc<Store>,
    (name, (guard, node)): (String, (Hold, Option<Node>)),
) -> Option<ClaimedItem> {
    // Where claims are not below their items, the item may be gone, and the claim is dropped.
    let Node { data, stat, .. } = node?;
    tracing::debug!(path = %store.path, item = %name, fence = %guard.fence(), "item claimed");
    let deliveries = store.paths.counts_claims().then(|| children_ever(&stat));
    let mine = LocalClaim::new(store, name, guard.token());
    Some(ClaimedItem { guard, mine, node: data, deliveries })
}

/// Looks which of the first `count` are free, as far as the server knows that this client talks to.
async fn are_free(store: &Store, backlog: &Backlog, count: usize) -> Result<Vec<bool>, Error> {
    let names = backlog.first(count);
    let looks = names.iter().map(|name| async {
        Ok(match &store.paths.layout {
            QueueLayout::Native => {
                let item = store.client.exists(&store.paths.item(name)).await?;
                item.is_some_and(|stat| stat.num_children == 0)
            }
            QueueLayout::Curator { .. } => store.client.exists(&store.paths.claim(name)).await?.is_none(),
        })
    });
    join_all(looks).await.into_iter().collect()
}

/// Creates the folder of the claims, where that is a place of its own and missing; false when that is not why
/// there is no parent.
async fn made_lock_folder(store: &Store) -> Result<bool, Error> {
    let QueueLayout::Curator { lock_path } = &store.paths.layout else { return Ok(false) };
    if store.client.exists(lock_path).await?.is_some() {
        return Ok(false);
    }
    match ensure_folder(&store.client, lock_path).await {
        Err(error) if error.kind() == ErrorKind::NodeExists => Ok(true),
        result => result.map(|()| true),
    }
}
