//! Reactions of the first two in the line of idle consumers to changes of the queue.

use super::wakeups::Wakeups;
use crate::store::{Listing, Prospect, Store, children_ever};
use docent_core::{Error, planted};
use futures_util::future::try_join_all;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time that others leave to those ahead of them, once they have seen an item.
pub(super) const HEAD_START: Duration = Duration::from_millis(250);
/// Maximum number of refused items that are looked at to find out whether others took them meanwhile.
const LOOKED_AT: usize = 8;

/// Sign that there may be an item to claim.
pub(crate) enum Sign {
    /// This is how items and claims stand.
    Listed(Listing),
    /// An item may be handed out now that could not be before.
    Due,
    /// The client is closed: nothing is known.
    Closed,
}

/// Reason to stop waiting at a place.
pub(super) enum Stop {
    Sign(Sign),
    /// The place was deleted, or went with its session.
    Gone,
    /// The free items are for those behind this process.
    PassOn,
}

/// Waits for a change of the queue; the second in the line, for one that the first does nothing about.
///
/// # Cancel safety
/// Cancel safe: an item that was `seen` is looked for again, also by one that is the first by then.
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
                // Until it is known: the call may be dropped meanwhile.
                *seen = Some(Instant::now());
                let passes = is_to_pass_on(store, &names).await?;
                *seen = None;
                if passes {
                    return Ok(Stop::PassOn);
                }
            }
            // The first in the line tells how many items there are.
            Prospect::Nothing if is_second => continue,
            Prospect::Item | Prospect::Nothing => {}
        }
        return Ok(Stop::Sign(Sign::Listed(listing)));
    }
}

/// True when one of the free items `names`, which this process leaves to others, was taken since this process
/// went behind the others last: others may have joined the line meanwhile.
async fn is_to_pass_on(store: &Store, names: &[String]) -> Result<bool, Error> {
    if planted!(RefusedNotPassedOn) {
        return Ok(false);
    }
    let looks = names.iter().take(LOOKED_AT).map(|name| async move {
        let item = store.client.exists(&store.paths.item(name)).await?;
        Ok::<_, Error>(item.map(|item| (name, children_ever(&item))))
    });
    // Noted for all of them at once: a call that is dropped before has passed nothing on.
    let looked_at = try_join_all(looks).await?;
    let passes = looked_at.into_iter().flatten().map(|(name, claims)| store.aside.pass_on(name, claims));
    Ok(passes.fold(false, |any, one| any | one))
}
