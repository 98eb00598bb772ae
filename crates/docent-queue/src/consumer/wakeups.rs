//! Watches of the first processes in the line of idle consumers.

use crate::store::{Listing, Store};
use docent_core::{Children, Error, WatchStream, planted};
use futures_util::StreamExt;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Pause between two listings of the claims, which change with each item that other consumers process.
const PAUSE: Duration = Duration::from_millis(100);

/// Listings of items and claims, one for each change that may have freed an item.
pub(crate) struct Wakeups {
    items: WatchStream<Children>,
    claims: WatchStream<Children>,
    /// Latest listing of the items; `None` before the first.
    folder: Option<Option<Children>>,
    claimed: Option<HashSet<String>>,
    /// Time before which claims are not listed again.
    resting: Instant,
}

impl Wakeups {
    pub(crate) fn new(store: &Store) -> Result<Self, Error> {
        Ok(Self {
            items: store.client.watch_children(&store.paths.items)?,
            claims: store.client.watch_children(&store.paths.claims)?,
            folder: None,
            claimed: None,
            resting: Instant::now(),
        })
    }

    /// Waits for a change. Returns `None` if the client is closed.
    ///
    /// # Errors
    /// The servers' error for a folder, such as `NoAuth`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(crate) async fn next(&mut self, store: &Store) -> Result<Option<Listing>, Error> {
        loop {
            // If there are no items, all claims concern items that are just being put or finished.
            let has_items = self.folder.as_ref().is_some_and(|folder| folder_has_items(folder.as_ref()));
            let is_deaf = planted!(FreedClaimNotNoticed) && self.claimed.is_some();
            tokio::select! {
                listed = self.items.next() => {
                    let Some(listed) = listed else { return Ok(None) };
                    self.folder = Some(listed?);
                }
                listed = after(self.resting, self.claims.next()), if has_items && !is_deaf => {
                    let Some(listed) = listed else { return Ok(None) };
                    self.claimed = Some(listed?.map(|claims| claims.names.into_iter().collect()).unwrap_or_default());
                    self.resting = Instant::now() + PAUSE;
                }
            }
            match (&self.folder, &self.claimed) {
                (Some(folder), Some(claimed)) => {
                    return Ok(Some(store.items.listing(folder.clone(), claimed.clone())));
                }
                (Some(folder), None) if !folder_has_items(folder.as_ref()) => {
                    return Ok(Some(store.items.listing(None, HashSet::new())));
                }
                _ => {}
            }
        }
    }
}

fn folder_has_items(folder: Option<&Children>) -> bool {
    folder.is_some_and(|folder| !folder.names.is_empty())
}

async fn after<F: Future>(time: Instant, future: F) -> F::Output {
    sleep_until(time).await;
    future.await
}
