use super::wakeups::Wakeups;
use crate::store::{Listing, Store};
use docent_core::recipe::Hold;
use docent_core::{Error, planted};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time between two looks of all together that wait in the line.
const LOOK: Duration = Duration::from_secs(1);

/// The place of this process in the line of idle consumers.
///
/// The first in the line watches for all. The others look from time to time themselves, all together about
/// once a second: the first one may be dead, and its place stands until its session has ended.
pub(crate) struct Idle {
    place: Place,
    /// Time of the next look by somebody who is not the first.
    look: Instant,
}

enum Place {
    Waiting(BoxFuture<'static, Result<Hold, Error>>),
    First(Hold, Box<Wakeups>),
}

/// Sign that there may be an item to claim.
pub(crate) enum Sign {
    /// This is how items and claims stand.
    Listed(Listing),
    /// It is time to list them.
    Look,
    /// The client is closed, or the place in the line is gone: nothing is known.
    Gone,
}

impl Idle {
    pub(crate) fn new(store: &Store) -> Self {
        Self { place: Place::Waiting(turn(store)), look: Instant::now() + LOOK }
    }

    /// Waits for a sign.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the place in the line is kept.
    pub(crate) async fn sign(&mut self, store: &Arc<Store>) -> Result<Sign, Error> {
        loop {
            match &mut self.place {
                Place::Waiting(turn) => tokio::select! {
                    hold = turn => {
                        let watching = Box::new(Wakeups::new(store)?);
                        self.place = Place::First(hold?, watching);
                    }
                    () = sleep_until(self.look), if !planted!(OthersDoNotLook) => {
                        self.look = Instant::now() + interval(store).await;
                        return Ok(Sign::Look);
                    }
                },
                Place::First(hold, wakeups) => tokio::select! {
                    listing = wakeups.next(store) => {
                        return Ok(listing?.map_or(Sign::Gone, Sign::Listed));
                    }
                    // Somebody else is first in the line, and watches now.
                    _ = hold.lost() => self.place = Place::Waiting(turn(store)),
                },
            }
        }
    }
}

/// Waits in the line until nobody is ahead.
fn turn(store: &Store) -> BoxFuture<'static, Result<Hold, Error>> {
    let line = store.idle.clone();
    Box::pin(async move { line.acquire(None).await })
}

/// Time until the next look: longer, the more there are in the line.
async fn interval(store: &Store) -> Duration {
    let line = store.client.exists(&store.paths.idle).await;
    let others = line.ok().flatten().map_or(1, |line| line.num_children.saturating_sub(1).max(1));
    LOOK.saturating_mul(u32::try_from(others).unwrap_or(u32::MAX))
}
