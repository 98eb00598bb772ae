use super::wakeups::Wakeups;
use crate::layout::number_behind;
use crate::store::{Listing, Store};
use docent_core::recipe::Ticket;
use docent_core::{Client, Error, ErrorKind, planted};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, select_all};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Text before the number in the name of a place.
pub const IDLE: &str = "idle-";
/// How many of the line watch for items: the first may be dead, and its place stands until its session has
/// ended.
const WATCHING: usize = 2;
/// Time that the second in the line leaves to the first.
const HEAD_START: Duration = Duration::from_millis(250);

/// The place of this process in the line of idle consumers.
///
/// The first two watch the queue, the second one to step in where the first does nothing. The others wait for
/// one of the nearest two ahead to leave. So a put wakes the process that gets the item, the second one, and
/// the one that watches from then on. A place that is gone without its process knowing does no harm: one more
/// watches until it gets an item.
#[derive(Default)]
pub(crate) struct Idle {
    joining: Option<BoxFuture<'static, Result<Place, Error>>>,
    place: Option<Place>,
}

/// Sign that there may be an item to claim.
pub(crate) enum Sign {
    /// This is how items and claims stand.
    Listed(Listing),
    /// The client is closed: nothing is known.
    Closed,
}

/// Resolves when a node is gone.
type Gone = BoxFuture<'static, Result<(), Error>>;

struct Place {
    ticket: Ticket,
    /// Number of places ahead, and the nearest of them, at most two. `None` when the line is to be listed.
    ahead: Option<(usize, Vec<Gone>)>,
    wakeups: Option<Box<Wakeups>>,
    /// Time until which the first in the line has its head start, for an item that was seen as the second.
    seen: Option<Instant>,
}

impl Idle {
    /// Waits for a sign.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the place in the line is kept.
    pub(crate) async fn sign(&mut self, store: &Arc<Store>) -> Result<Sign, Error> {
        loop {
            let Some(place) = &mut self.place else {
                let joining = self.joining.get_or_insert_with(|| Box::pin(Place::take(Arc::clone(store))));
                let place = joining.await;
                self.joining = None;
                self.place = Some(place?);
                continue;
            };
            match place.sign(store).await? {
                Some(sign) => return Ok(sign),
                // It was deleted, or went with its session.
                None => self.place = None,
            }
        }
    }
}

impl Place {
    async fn take(store: Arc<Store>) -> Result<Self, Error> {
        let ticket = store.idle.take_ticket(None).await?;
        let ahead = (ticket.ahead() == Some(0)).then(|| (0, Vec::new()));
        Ok(Self { ticket, ahead, wakeups: None, seen: None })
    }

    /// Waits for a sign; `None` when the place is gone.
    async fn sign(&mut self, store: &Arc<Store>) -> Result<Option<Sign>, Error> {
        loop {
            let Some((rank, ahead)) = &mut self.ahead else {
                if !self.look(store).await? {
                    return Ok(None);
                }
                continue;
            };
            let watching = if planted!(OthersDoNotLook) { 1 } else { WATCHING };
            if *rank >= watching {
                any(ahead).await?;
                self.ahead = None;
                continue;
            }
            let wakeups = match &mut self.wakeups {
                Some(wakeups) => wakeups,
                none => none.insert(Box::new(Wakeups::new(store)?)),
            };
            let is_second = *rank > 0;
            tokio::select! {
                listing = wait(store, wakeups, &mut self.seen, is_second) => {
                    return Ok(Some(listing?.map_or(Sign::Closed, Sign::Listed)));
                }
                left = any(ahead), if is_second => left?,
            }
            // The one ahead has left: this is the first.
            self.ahead = Some((0, Vec::new()));
        }
    }

    /// Looks for the places ahead; false when this one is gone.
    async fn look(&mut self, store: &Store) -> Result<bool, Error> {
        let names = match store.client.children(&store.paths.idle).await {
            Ok(line) => line.names,
            Err(error) if error.kind() == ErrorKind::NoNode => return Ok(false),
            Err(error) => return Err(error),
        };
        let Some(rank) = store.idle.ahead_of(&self.ticket, &names) else { return Ok(false) };
        let mut places: Vec<_> =
            names.iter().filter_map(|name| Some((number_behind(name, IDLE)?, name))).collect();
        places.sort_unstable();
        let nearest = places.iter().take(rank).rev().take(WATCHING);
        let watched = nearest.map(|(_, name)| gone(&store.client, &format!("{}/{name}", store.paths.idle)));
        self.ahead = Some((rank, watched.collect::<Result<_, _>>()?));
        Ok(true)
    }
}

async fn any(ahead: &mut [Gone]) -> Result<(), Error> {
    match ahead.is_empty() {
        true => std::future::pending().await,
        false => select_all(ahead.iter_mut()).await.0,
    }
}

/// Waits for a change of the queue; the second in the line, for one that the first does nothing about.
///
/// # Cancel safety
/// This function is cancel safe: an item that was `seen` is looked for again, also by one that is the first
/// by then.
async fn wait(
    store: &Store,
    wakeups: &mut Wakeups,
    seen: &mut Option<Instant>,
    is_second: bool,
) -> Result<Option<Listing>, Error> {
    loop {
        if let Some(until) = *seen {
            if is_second {
                sleep_until(until).await;
            }
            let listing = store.items.list().await?;
            *seen = None;
            if has_free(store, &listing) {
                return Ok(Some(listing));
            }
        }
        let Some(listing) = wakeups.next(store).await? else { return Ok(None) };
        if !is_second {
            return Ok(Some(listing));
        }
        if has_free(store, &listing) {
            *seen = Some(Instant::now() + HEAD_START);
        }
    }
}

fn has_free(store: &Store, listing: &Listing) -> bool {
    let now = Instant::now();
    listing
        .items
        .iter()
        .any(|item| !listing.claimed.contains(&item.text) && !store.aside.has(&item.text, now))
}

/// Waits until there is no node at `path`.
fn gone(client: &Client, path: &str) -> Result<Gone, Error> {
    let mut node = client.watch_exists(path)?;
    Ok(Box::pin(async move {
        while let Some(state) = node.next().await {
            if state?.is_none() {
                break;
            }
        }
        Ok(())
    }))
}
