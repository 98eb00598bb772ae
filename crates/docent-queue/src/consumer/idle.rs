use super::changes::{HEAD_START, Sign, Stop, changes};
use super::is_passing;
use super::wakeups::Wakeups;
use crate::layout::number_behind;
use crate::store::{Listing, Prospect, Store};
use docent_core::recipe::Ticket;
use docent_core::{Client, Error, ErrorKind, planted};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, select_all};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Text before the number in the name of a place.
pub const IDLE: &str = "idle-";
/// Number of places at the head of the line whose processes watch for items: the first process may be dead,
/// and its place stands until its session has ended.
const WATCHING: usize = 2;

/// The place of this process in the line of idle consumers.
///
/// The first two watch the queue, the second one to step in where the first does nothing. The others wait for
/// one of the nearest two ahead to leave, and look at the queue in place of their session's pings, in case
/// all who watch are dead. So a put wakes the process that gets the item, the second one, and the one that
/// watches from then on.
///
/// A process at the head that leaves the free items to others goes behind all of them, once for each time
/// that such an item becomes free. So each process in the line looks at it, in turn.
///
/// A place that is gone without its process knowing does no harm: one more watches until it gets an item.
#[derive(Default)]
pub(crate) struct Idle {
    joining: Option<BoxFuture<'static, Result<Place, Error>>>,
    place: Option<Place>,
}

/// Resolves when a node is gone.
type Gone = BoxFuture<'static, Result<(), Error>>;

struct Place {
    ticket: Ticket,
    /// Number of places ahead, and the nearest of them, at most two. `None` when the line is to be listed.
    ahead: Option<(usize, Vec<Gone>)>,
    wakeups: Option<Box<Wakeups>>,
    /// Time until which those ahead have their head start, for an item that was seen from behind them.
    seen: Option<Instant>,
    /// Time of the last look at the queue from behind those that watch it.
    looked: Instant,
}

impl Idle {
    /// Waits for a sign. `due` is the time from which on an item may be handed out that is in the last
    /// listing, which is a sign for those that watch.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the place in the line is kept.
    pub(crate) async fn sign(&mut self, store: &Arc<Store>, due: Option<Instant>) -> Result<Sign, Error> {
        loop {
            let Some(place) = &mut self.place else {
                let joining = self.joining.get_or_insert_with(|| Box::pin(Place::take(Arc::clone(store))));
                let place = joining.await;
                self.joining = None;
                self.place = Some(place?);
                continue;
            };
            match place.wait(store, due).await? {
                Stop::Sign(sign) => return Ok(sign),
                Stop::Gone => {}
                Stop::PassOn => {
                    tracing::debug!(path = %store.path, "passing free items on to other consumers");
                }
            }
            self.place = None;
        }
    }
}

impl Place {
    async fn take(store: Arc<Store>) -> Result<Self, Error> {
        let ticket = store.idle.take_ticket(None).await?;
        let ahead = (ticket.ahead() == Some(0)).then(|| (0, Vec::new()));
        Ok(Self { ticket, ahead, wakeups: None, seen: None, looked: Instant::now() })
    }

    /// Waits for a reason to leave the place, or to claim.
    async fn wait(&mut self, store: &Arc<Store>, due: Option<Instant>) -> Result<Stop, Error> {
        loop {
            let Some((rank, _)) = &self.ahead else {
                if !self.list_line(store).await? {
                    return Ok(Stop::Gone);
                }
                continue;
            };
            if *rank < watching() {
                return self.watch(store, due).await;
            }
            if let Some(stop) = self.stand_by(store).await? {
                return Ok(stop);
            }
        }
    }

    /// Watches the queue as the first or second in the line.
    ///
    /// # Cancel safety
    /// Cancel safe: an item that was `seen` is looked for again, also as the first by then.
    async fn watch(&mut self, store: &Arc<Store>, due: Option<Instant>) -> Result<Stop, Error> {
        loop {
            let Self { ahead, wakeups, seen, .. } = self;
            let wakeups = match wakeups {
                Some(wakeups) => wakeups,
                none => none.insert(Box::new(Wakeups::new(store)?)),
            };
            let (rank, nearest) = ahead.get_or_insert_with(|| (0, Vec::new()));
            let is_second = *rank > 0;
            tokio::select! {
                stop = changes(store, wakeups, seen, is_second) => return stop,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    return Ok(Stop::Sign(Sign::Due));
                }
                left = any(nearest), if is_second => left?,
            }
            // The one ahead has left: this is the first.
            self.ahead = Some((0, Vec::new()));
        }
    }

    /// Waits behind those that watch, until one of the nearest two ahead leaves; looks at the queue from time
    /// to time. `None` when the line is to be listed again.
    ///
    /// # Cancel safety
    /// Cancel safe: an item that was `seen` is looked for again.
    async fn stand_by(&mut self, store: &Store) -> Result<Option<Stop>, Error> {
        loop {
            let Self { ahead: Some((rank, nearest)), seen, looked, .. } = self else { return Ok(None) };
            let due = seen.unwrap_or(*looked + pace(store, *rank));
            let found = tokio::select! {
                left = any(nearest) => {
                    left?;
                    self.ahead = None;
                    return Ok(None);
                }
                found = look(store, due) => found,
            };
            *looked = Instant::now();
            let was_seen = seen.take().is_some();
            match found {
                Ok((line, listing)) => {
                    if let Some(stop) = self.judge(store, &line, listing, was_seen) {
                        return Ok(Some(stop));
                    }
                }
                // The place is kept through an outage.
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Judges a look at the line and the queue. An item that is free is left to those ahead for a moment,
    /// unless one `was_seen` in the look before.
    fn judge(&mut self, store: &Store, line: &[String], listing: Listing, was_seen: bool) -> Option<Stop> {
        store.note(&listing);
        let Some(rank) = store.idle.ahead_of(&self.ticket, line) else { return Some(Stop::Gone) };
        let is_free = store.prospect(&listing, false) == Prospect::Item;
        if is_free && was_seen {
            return Some(Stop::Sign(Sign::Listed(listing)));
        }
        self.seen = is_free.then(|| self.looked + HEAD_START);
        match &mut self.ahead {
            Some((known, _)) if rank >= watching() => *known = rank,
            // It watches from now on.
            ahead => *ahead = None,
        }
        None
    }

    /// Lists the line, and watches the nearest places ahead; false when this one is gone.
    async fn list_line(&mut self, store: &Store) -> Result<bool, Error> {
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

fn watching() -> usize {
    if planted!(OthersDoNotLook) { 1 } else { WATCHING }
}

/// Time between two looks of a process with `rank` others ahead: as many pulses of its session as there are
/// other groups of processes ahead, up to the session timeout. By then the places of dead processes are gone.
fn pace(store: &Store, rank: usize) -> Duration {
    /// Processes that look at the same pace.
    const GROUP: usize = 8;
    let timeout = store.client.session_timeout().unwrap_or(Duration::from_secs(20));
    // A session sends something each sixth of its timeout. A look that comes a little earlier takes the place
    // of a ping.
    let pulse = timeout * 9 / 60;
    let pulses = u32::try_from(1 + rank.saturating_sub(WATCHING) / GROUP).unwrap_or(u32::MAX);
    pulse.saturating_mul(pulses).min(timeout)
}

/// Lists the line and the queue at the time `due`.
async fn look(store: &Store, due: Instant) -> Result<(Vec<String>, Listing), Error> {
    if planted!(OthersDoNotLook | DeadHoldLineUp | RefusedNotPassedOn) {
        return std::future::pending().await;
    }
    sleep_until(due).await;
    store.items.list_with_line().await
}

async fn any(ahead: &mut [Gone]) -> Result<(), Error> {
    match ahead.is_empty() {
        true => std::future::pending().await,
        false => select_all(ahead.iter_mut()).await.0,
    }
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
