//! Watches of the first in the line of idle consumers.

use crate::store::Store;
use docent_core::{Children, Error, WatchStream, planted};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashSet;
use std::time::Duration;

/// Claims that are watched. Behind them it looks again from time to time.
const WATCHED: usize = 64;
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Tells when there may be an item to claim: the folder's children changed, or a claim ended, of which the
/// folder says nothing.
pub(crate) struct Wakeups<'a> {
    store: &'a Store,
    folder: WatchStream<Children>,
    items: Vec<String>,
    /// Resolve with the item's name when it has no claim, and whether there was one.
    claims: FuturesUnordered<BoxFuture<'static, (String, bool)>>,
    watched: HashSet<String>,
    /// Items that had no claim, and could not be claimed either: they are tried again from time to time.
    unclaimable: HashSet<String>,
}

impl<'a> Wakeups<'a> {
    pub(crate) fn new(store: &'a Store) -> Result<Self, Error> {
        Ok(Self {
            store,
            folder: store.client.watch_children(&store.paths.items)?,
            items: Vec::new(),
            claims: FuturesUnordered::new(),
            watched: HashSet::new(),
            unclaimable: HashSet::new(),
        })
    }

    /// Watches the claims of the oldest items that were listed.
    pub(crate) fn watch_claims(&mut self) -> Result<(), Error> {
        // Items that this process quarantined are left alone here.
        self.items.retain(|name| !self.store.local.is_quarantined(name));
        if planted!(FreedClaimNotNoticed) {
            return Ok(());
        }
        for name in self.items.iter().take(WATCHED) {
            if self.unclaimable.contains(name) || !self.watched.insert(name.clone()) {
                continue;
            }
            let (name, claim) = (name.clone(), self.store.paths.claim(name));
            let mut claim = self.store.client.watch_exists(&claim)?;
            self.claims.push(Box::pin(async move {
                let mut was_there = false;
                // An error, such as of permissions, is followed by another try.
                while let Some(state) = claim.next().await {
                    match state {
                        Ok(None) => break,
                        Ok(Some(_)) => was_there = true,
                        Err(_) => {}
                    }
                }
                (name, was_there)
            }));
        }
        Ok(())
    }

    /// Waits for a sign. False when the client is closed.
    ///
    /// # Errors
    /// The servers' error about the folder, such as `NoAuth`.
    pub(crate) async fn next(&mut self) -> Result<bool, Error> {
        loop {
            let unwatched = self.items.len() > self.watched.len() && !planted!(FreedClaimNotNoticed);
            tokio::select! {
                listed = self.folder.next() => {
                    let Some(listed) = listed else { return Ok(false) };
                    let children = listed?;
                    self.items = children.map_or_else(Vec::new, |folder| self.store.items.among(folder.names));
                    return Ok(true);
                }
                Some((name, was_there)) = self.claims.next() => {
                    self.watched.remove(&name);
                    // The end of a claim is no sign where the item is gone, too.
                    if self.items.contains(&name) {
                        if !was_there {
                            self.unclaimable.insert(name);
                        }
                        return Ok(true);
                    }
                }
                () = tokio::time::sleep(LOOK_AGAIN), if unwatched => {
                    self.unclaimable.clear();
                    return Ok(true);
                }
            }
        }
    }
}
