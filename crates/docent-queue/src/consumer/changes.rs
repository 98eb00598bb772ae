//! Reactions to changes of the queue, by the first two processes in the line of idle consumers.

use crate::store::{Listing, Prospect, Store, children_ever};
use docent_core::{Children, Error, WatchStream, planted};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time for which a process leaves an item that it has seen to the processes ahead of it.
pub(super) const HEAD_START: Duration = Duration::from_millis(250);
/// Maximum number of refused items that are checked for whether other consumers took them meanwhile.
const MAX_CHECKED: usize = 8;

/// Pause between two listings of the claims, which change with each item that other consumers process.
const PAUSE: Duration = Duration::from_millis(100);

/// Sign that there may be an item to claim.
pub(crate) enum Sign {
    /// Current items and claims.
    Listed(Listing),
    /// An item that was delayed may be handed out now.
    Due,
    /// The client is closed, so nothing is known.
    Closed,
}

/// Reason to stop waiting at a place in the line.
pub(super) enum Stop {
    Sign(Sign),
    /// The place was deleted, or ended with its session.
    PlaceDeleted,
    /// The free items are for the processes behind this one.
    PassOn,
}

/// Waits for a change of the queue. The second process in the line waits for a change to which the first one
/// does not react.
///
/// # Cancel safety
/// Cancel safe: an item that was `seen` is checked again by the next call, also if this process is the first
/// one by then.
pub(super) async fn changes(
    store: &Store,
    wakeups: &mut Wakeups,
    seen: &mut Option<Instant>,
    is_second: bool,
) -> Result<Stop, Error> {
    loop {
        let listing = match *seen {
            Some(until) => {
                if is_second {
                    sleep_until(until).await;
                }
                let listing = store.items.list().await?;
                *seen = None;
                listing
            }
            None => match wakeups.next(store).await? {
                Some(listing) if is_second => {
                    store.note(&listing);
                    let has_free = store.prospect(&listing, true) != Prospect::Nothing;
                    *seen = has_free.then(|| Instant::now() + HEAD_START);
                    continue;
                }
                Some(listing) => listing,
                None => return Ok(Stop::Sign(Sign::Closed)),
            },
        };
        store.note(&listing);
        match store.prospect(&listing, true) {
            Prospect::Refused(names) => {
                // Kept until the result is known, because the call may be dropped meanwhile.
                *seen = Some(Instant::now());
                let passes = is_passed_on(store, &names).await?;
                *seen = None;
                if passes {
                    return Ok(Stop::PassOn);
                }
            }
            // The first process in the line reports the number of items.
            Prospect::Nothing if is_second => continue,
            Prospect::Item | Prospect::Nothing => {}
        }
        return Ok(Stop::Sign(Sign::Listed(listing)));
    }
}

/// Returns whether one of the free items `names`, which this process leaves to other consumers, was taken
/// since this process last went to the end of the line: other consumers may have joined the line meanwhile.
async fn is_passed_on(store: &Store, names: &[String]) -> Result<bool, Error> {
    if planted!(RefusedNotPassedOn) {
        return Ok(false);
    }
    let checks = names.iter().take(MAX_CHECKED).map(|name| async move {
        let item = store.client.exists(&store.paths.item(name)).await?;
        Ok::<_, Error>(item.map(|item| (name, children_ever(&item))))
    });
    // Recorded for all items together: a call that is dropped before this point has passed nothing on.
    let checked = try_join_all(checks).await?;
    let passes = checked.into_iter().flatten().map(|(name, claims)| store.skipped.pass_on(name, claims));
    Ok(passes.fold(false, |any, one| any | one))
}

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
