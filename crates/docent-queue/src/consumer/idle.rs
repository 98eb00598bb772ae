use super::changes::{HEAD_START, Sign, Stop, Wakeups, changes};
use super::is_passing;
use crate::layout::number_after;
use crate::store::{Listing, Prospect, Store};
use docent_core::recipe::{Ticket, full_path, if_exists};
use docent_core::{Client, Error, planted};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, select_all};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Text before the sequence number in the name of a place.
pub const IDLE: &str = "idle-";
/// Number of places at the head of the line whose processes watch for items. There are two because the first
/// process may be dead, and its place exists until its session expires.
const WATCHING: usize = 2;

/// Place of this process in the line of idle consumers.
///
/// The first two processes watch the queue; the second one steps in if the first does not react. The others
/// wait until one of the nearest two ahead leaves. They also read the queue in place of their session's
/// pings, in case all watching processes are dead. A put therefore wakes the process that gets the item, the
/// second process, and the process that watches from then on.
///
/// A process at the head that leaves the free items to other consumers moves to the end of the line, once
/// each time such an item becomes free. This way each process in the line checks the item in turn.
///
/// If a place is deleted without the knowledge of its process, the only effect is one more watching process,
/// until that process gets an item.
#[derive(Default)]
pub(crate) struct Idle {
    joining: Option<BoxFuture<'static, Result<IdlePlace, Error>>>,
    place: Option<IdlePlace>,
}

/// Future that resolves when a node is deleted.
type Deleted = BoxFuture<'static, Result<(), Error>>;

struct IdlePlace {
    ticket: Ticket,
    /// Number of places ahead, and futures for the nearest of them, at most two. `None` if the line has to be
    /// listed.
    ahead: Option<(usize, Vec<Deleted>)>,
    wakeups: Option<Box<Wakeups>>,
    /// Time until which the processes ahead have their head start for an item that this process has seen.
    seen: Option<Instant>,
    /// Time at which this process last read the queue while it was not watching.
    last_read: Instant,
}

impl Idle {
    /// Waits for a sign of an item. `due` is the time at which a delayed item of the last listing may be
    /// handed out, which is a sign for watching processes.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the place in the line is kept.
    pub(crate) async fn sign(&mut self, store: &Arc<Store>, due: Option<Instant>) -> Result<Sign, Error> {
        loop {
            let Some(place) = &mut self.place else {
                let joining =
                    self.joining.get_or_insert_with(|| Box::pin(IdlePlace::join(Arc::clone(store))));
                let place = joining.await;
                self.joining = None;
                self.place = Some(place?);
                continue;
            };
            match place.wait(store, due).await? {
                Stop::Sign(sign) => return Ok(sign),
                Stop::PlaceDeleted => {}
                Stop::PassOn => {
                    // Event: This process leaves the free items of a queue to other consumers, because it
                    // cannot decode them. It moves to the end of the line of waiting consumers.
                    tracing::debug!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), "leaving free items to other consumers; moving to the end of the line");
                }
            }
            self.place = None;
        }
    }
}

impl IdlePlace {
    async fn join(store: Arc<Store>) -> Result<Self, Error> {
        let ticket = store.idle.take_ticket(None).await?;
        let ahead = (ticket.ahead() == Some(0)).then(|| (0, Vec::new()));
        Ok(Self { ticket, ahead, wakeups: None, seen: None, last_read: Instant::now() })
    }

    /// Waits for a reason to leave the place, or to claim.
    async fn wait(&mut self, store: &Arc<Store>, due: Option<Instant>) -> Result<Stop, Error> {
        loop {
            let Some((rank, _)) = &self.ahead else {
                if !self.list_line(store).await? {
                    return Ok(Stop::PlaceDeleted);
                }
                continue;
            };
            if *rank < watching() {
                return self.watch(store, due).await;
            }
            if let Some(stop) = self.wait_behind_watchers(store).await? {
                return Ok(stop);
            }
        }
    }

    /// Watches the queue as the first or second in the line.
    ///
    /// # Cancel safety
    /// Cancel safe: an item that was `seen` is checked again by the next call, also if this process is the
    /// first one by then.
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
                departed = any_deleted(nearest), if is_second => departed?,
            }
            // The process ahead has left, so this process is now the first.
            self.ahead = Some((0, Vec::new()));
        }
    }

    /// Waits behind the watching processes, until one of the nearest two ahead leaves. Reads the queue from
    /// time to time. Returns `None` if the line has to be listed again.
    ///
    /// # Cancel safety
    /// Cancel safe: an item that was `seen` is checked again by the next call.
    async fn wait_behind_watchers(&mut self, store: &Store) -> Result<Option<Stop>, Error> {
        loop {
            let Self { ahead: Some((rank, nearest)), seen, last_read, .. } = self else { return Ok(None) };
            let due = seen.unwrap_or(*last_read + pace(store, *rank));
            let reading = tokio::select! {
                departed = any_deleted(nearest) => {
                    departed?;
                    self.ahead = None;
                    return Ok(None);
                }
                reading = read_queue(store, due) => reading,
            };
            *last_read = Instant::now();
            let was_seen = seen.take().is_some();
            match reading {
                Ok((line, listing)) => {
                    if let Some(stop) = self.evaluate(store, &line, listing, was_seen) {
                        return Ok(Some(stop));
                    }
                }
                // The place is kept during an outage.
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Evaluates a reading of the line and the queue. A free item is left to the processes ahead for a
    /// moment, unless a free item `was_seen` in the previous reading.
    fn evaluate(&mut self, store: &Store, line: &[String], listing: Listing, was_seen: bool) -> Option<Stop> {
        store.note(&listing);
        let Some(rank) = store.idle.ahead_of(&self.ticket, line) else { return Some(Stop::PlaceDeleted) };
        let is_free = store.prospect(&listing, false) == Prospect::Item;
        if is_free && was_seen {
            return Some(Stop::Sign(Sign::Listed(listing)));
        }
        self.seen = is_free.then(|| self.last_read + HEAD_START);
        match &mut self.ahead {
            Some((known, _)) if rank >= watching() => *known = rank,
            // This process watches from now on.
            ahead => *ahead = None,
        }
        None
    }

    /// Lists the line, and watches the nearest places ahead. Returns false if the own place was deleted.
    async fn list_line(&mut self, store: &Store) -> Result<bool, Error> {
        let Some(line) = if_exists(store.client.children(&store.paths.idle).await)? else {
            return Ok(false);
        };
        let names = line.names;
        let Some(rank) = store.idle.ahead_of(&self.ticket, &names) else { return Ok(false) };
        let mut places: Vec<_> =
            names.iter().filter_map(|name| Some((number_after(name, IDLE)?, name))).collect();
        places.sort_unstable();
        let nearest = places.iter().take(rank).rev().take(WATCHING);
        let watched =
            nearest.map(|(_, name)| until_deleted(&store.client, &format!("{}/{name}", store.paths.idle)));
        self.ahead = Some((rank, watched.collect::<Result<_, _>>()?));
        Ok(true)
    }
}

fn watching() -> usize {
    if planted!(OthersDoNotLook) { 1 } else { WATCHING }
}

/// Returns the time between two reads of a process with `rank` processes ahead: one pulse of its session,
/// plus one for each group of processes ahead, up to the session timeout. Within the session timeout, the
/// places of dead processes are deleted.
fn pace(store: &Store, rank: usize) -> Duration {
    /// Number of processes that read at the same pace.
    const GROUP: usize = 8;
    let timeout = store.client.session_timeout().unwrap_or(Duration::from_secs(20));
    // A session sends a request at least once in each sixth of its timeout. A read that comes a little
    // earlier replaces a ping.
    let pulse = timeout * 9 / 60;
    let pulses = u32::try_from(1 + rank.saturating_sub(WATCHING) / GROUP).unwrap_or(u32::MAX);
    pulse.saturating_mul(pulses).min(timeout)
}

/// Lists the line and the queue at the time `due`.
async fn read_queue(store: &Store, due: Instant) -> Result<(Vec<String>, Listing), Error> {
    if planted!(OthersDoNotLook | DeadHoldLineUp | RefusedNotPassedOn) {
        return std::future::pending().await;
    }
    sleep_until(due).await;
    store.items.list_with_line().await
}

async fn any_deleted(ahead: &mut [Deleted]) -> Result<(), Error> {
    match ahead.is_empty() {
        true => std::future::pending().await,
        false => select_all(ahead.iter_mut()).await.0,
    }
}

/// Waits until there is no node at `path`.
fn until_deleted(client: &Client, path: &str) -> Result<Deleted, Error> {
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
