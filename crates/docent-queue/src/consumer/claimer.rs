//! The one task of a process that claims items of a queue, for all calls that take them.

use super::changes::Sign;
use super::endings;
use super::free_items::FreeItems;
use super::idle::Idle;
use crate::store::{ClaimedItem, Demand, ItemEnd, Leftover, Store, Taker};
use docent_core::recipe::{Stage, hand_out, spawn, stage_reached};
use docent_core::{Error, ErrorKind};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// Before an operation is tried again that failed in an outage.
const PAUSE: Duration = Duration::from_millis(200);

/// Ends of claims that are under way.
type Endings = FuturesUnordered<BoxFuture<'static, ()>>;

/// Starts the task that claims, if it does not run.
pub(crate) fn start(store: &Arc<Store>) {
    if store.desk.start() {
        // On the heap, because the runtime moves a task's future several times.
        spawn(&store.client, Box::pin(Claimer::new(Arc::clone(store)).run()));
    }
}

/// Lists the items beside an acknowledgement, where the call after it will want a listing: it need not wait
/// for it then.
pub(crate) fn look_ahead(store: &Arc<Store>) {
    let backlog = store.backlog.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted = backlog.is_wanted_ahead(Instant::now());
    drop(backlog);
    if is_wanted && store.desk.look_ahead() {
        start(store);
    }
}

/// Leaves the `end` of an item that no call has to the task that claims. The receiver is notified when that
/// is done.
pub(crate) fn leave(store: &Arc<Store>, item: ClaimedItem, end: ItemEnd) -> oneshot::Receiver<()> {
    let (done, ended) = oneshot::channel();
    store.desk.leave(Leftover { item, end, done: Some(done) });
    start(store);
    ended
}

/// Claims the lowest items that are free, as many as are wanted, in one write, for all calls that wait.
///
/// One write is under way at a time: of two claims under way a lost link might repeat the later one first,
/// and first claims would be out of order (decision 8).
struct Claimer {
    store: Arc<Store>,
    free: FreeItems,
    /// The place in the line of idle consumers, while calls wait and nothing is free.
    idle: Option<Idle>,
    /// True when something may be free that was not at the last attempt.
    sign: bool,
    running: Running,
}

/// Tells the desk when the task is gone.
struct Running(Option<Arc<Store>>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(store) = self.0.take() {
            store.desk.abandon();
        }
    }
}

impl Claimer {
    fn new(store: Arc<Store>) -> Self {
        Self {
            running: Running(Some(Arc::clone(&store))),
            free: FreeItems::new(Arc::clone(&store)),
            store,
            idle: None,
            sign: false,
        }
    }

    async fn run(mut self) {
        let mut endings = Endings::new();
        loop {
            if self.is_stopping() {
                self.store.desk.stop(&Error::closed("take", &self.store.path));
            }
            for leftover in self.store.desk.take_leftovers(Instant::now()) {
                endings.push(Box::pin(endings::end(Arc::clone(&self.store), leftover)));
            }
            beside(&mut endings, pin!(self.serve())).await;
            if self.store.desk.takes_look_ahead() && !self.is_stopping() {
                beside(&mut endings, pin!(self.list_ahead())).await;
            }
            let demand = self.store.desk.demand();
            if demand.now > 0 {
                self.free.begin();
                beside(&mut endings, pin!(self.work(demand))).await;
                continue;
            }
            self.idle = None;
            // From the end at the desk on, the next run of the task may begin.
            self.free.leave();
            if endings.is_empty() && self.store.desk.end() {
                self.running.0 = None;
                return;
            }
            // An ending tells the desk when it is done.
            beside(&mut endings, pin!(self.rest::<()>(None))).await;
            self.free.go_on();
        }
    }

    /// Lists the items for the next call.
    async fn list_ahead(&mut self) {
        if let Err(error) = self.free.list_ahead().await {
            // The next call is told, if it lasts.
            tracing::debug!(path = %self.store.path, %error, "items could not be listed ahead");
        }
    }

    /// True once the client's shutdown wants nothing more to be taken.
    fn is_stopping(&self) -> bool {
        stage_reached(&self.store.client, Stage::Deliveries).now_or_never().is_some()
    }

    async fn work(&mut self, demand: Demand) {
        if let Err(error) = self.attempt(demand).await {
            self.failed(error).await;
        }
    }

    /// Serves calls with the items on the shelf.
    async fn serve(&mut self) {
        loop {
            let next = std::iter::from_fn(|| self.store.desk.next_served());
            let mut served: Vec<_> = next.collect();
            if served.is_empty() {
                return;
            }
            let handed_out = hand_out_all(&self.store, &mut served).await;
            for (taker, mut items) in served {
                items.retain(|item| item.hold.is_held());
                match items.is_empty() {
                    // It gets the next ones.
                    true => self.store.desk.unserved(taker),
                    false => taker.offer(&self.store, items),
                }
            }
            if let Err(error) = handed_out {
                return self.failed(error).await;
            }
        }
    }

    /// Claims items if some are free; waits for a sign of one otherwise.
    async fn attempt(&mut self, demand: Demand) -> Result<(), Error> {
        let now = Instant::now();
        let has_more = self.free.has_more(now);
        if demand.asked || has_more || self.sign || self.idle.is_none() {
            let is_old = has_more || self.free.is_old(now);
            // A sign came with a listing, which says whether there is anything. To a call that wants an
            // answer now only a listing of its own says so.
            let known = std::mem::take(&mut self.sign) && !demand.asked;
            self.store.desk.trying(demand.until);
            let items = self.free.claim(demand, is_old, known).await?;
            if !items.is_empty() {
                // The next one in the line watches: the turn is over.
                self.idle = None;
                self.store.desk.shelve(items);
                return Ok(());
            }
            self.store.desk.answer_nothing(&self.store, demand.until);
            if demand.asked {
                return Ok(());
            }
        }
        self.wait().await
    }

    /// Waits in the line until there may be an item, or the desk has changed.
    async fn wait(&mut self) -> Result<(), Error> {
        let mut idle = self.idle.take().unwrap_or_default();
        let sign = {
            let (store, due) = (Arc::clone(&self.store), self.free.next());
            let sign = Box::pin(async { idle.sign(&store, due).await });
            self.rest(Some(sign)).await
        };
        self.idle = Some(idle);
        match sign.transpose()? {
            Some(Sign::Listed(listing)) => {
                self.free.fill(listing);
                self.sign = true;
            }
            // The next attempt says so.
            Some(Sign::Closed) => self.idle = None,
            Some(Sign::Due) | None => {}
        }
        Ok(())
    }

    /// Waits for a sign of an item, until the desk has changed or something was kept long enough.
    async fn rest<T>(&mut self, sign: Option<BoxFuture<'_, T>>) -> Option<T> {
        let store = Arc::clone(&self.store);
        let due = store.desk.rests_until();
        let (has_sign, stops) = (sign.is_some(), !self.is_stopping());
        let sign = async {
            match sign {
                Some(sign) => sign.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            sign = sign, if has_sign => return Some(sign),
            () = store.desk.changed() => {}
            () = stage_reached(&store.client, Stage::Deliveries), if stops => {}
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        None
    }

    /// Tells calls an error; those that wait are not told what time mends.
    async fn failed(&mut self, error: Error) {
        self.idle = None;
        self.sign = true;
        let passes = is_passing(&error);
        self.store.desk.answer_error(&error, !passes);
        if passes {
            tracing::debug!(path = %self.store.path, %error, "taking goes on");
            self.store.idle.pause(PAUSE).await;
        }
    }
}

/// Polls `future`, and the ends of claims beside it: they wait for nobody.
async fn beside<F: Future>(endings: &mut Endings, mut future: Pin<&mut F>) -> F::Output {
    loop {
        tokio::select! {
            biased;
            Some(()) = endings.next() => {}
            output = &mut future => return output,
        }
    }
}

/// Hands out at the servers what is not handed out yet, and some of the items behind it. Where that fails
/// these items are given back, to be claimed once more.
///
/// # Errors
/// When a single item is refused: of several some may be handed out.
async fn hand_out_all(store: &Store, served: &mut [(Taker, Vec<ClaimedItem>)]) -> Result<(), Error> {
    let Store { client, path, desk, claim_size, hand_out_size, limits, .. } = store;
    let wanted = served.iter().flat_map(|(_, items)| items).filter(|item| !item.handed_out).count();
    if wanted == 0 {
        return Ok(());
    }
    let mut ahead = desk.take_unhanded(hand_out_size.get().saturating_sub(wanted));
    let items = served.iter_mut().flat_map(|(_, items)| items).chain(&mut ahead);
    let items: Vec<_> = items.filter(|item| !item.handed_out).collect();
    let claims: Vec<_> = items.iter().map(|item| &item.hold).collect();
    let result = match hand_out(client, &claims, "take").await {
        Ok(()) => {
            hand_out_size.grow(limits.prefetch);
            for item in items {
                item.handed_out = true;
                item.counted_since += 1;
            }
            Ok(())
        }
        Err(error) => {
            tracing::debug!(%path, items = items.len(), %error, "failed to hand items out; giving them back");
            let items = items.len();
            served.iter_mut().for_each(|(_, items)| items.retain(|item| item.handed_out));
            ahead.clear();
            // Fewer at once may be in time.
            hand_out_size.unasked();
            match error.kind() {
                ErrorKind::NoAuth | ErrorKind::TooManyEphemerals if items > 1 => {
                    claim_size.unread(items);
                    Ok(())
                }
                ErrorKind::NoAuth | ErrorKind::TooManyEphemerals => Err(error),
                // The next claim says so, if it lasts.
                _ => Ok(()),
            }
        }
    };
    desk.shelve_first(ahead);
    result
}

/// True for errors that an outage causes and time mends.
///
/// Other errors than `Line::wait_out` waits out: the claim may be lost on the way, and may be of unknown
/// outcome. A missing folder of items is an empty queue, and no error.
pub(crate) fn is_passing(error: &Error) -> bool {
    match error.kind() {
        // The error of a client which is bound to a session that has ended.
        ErrorKind::SessionChanged => false,
        // A claim of unknown outcome goes with the session that it was sent in (decision 8).
        ErrorKind::OutcomeUnknown => true,
        // The items in work are acknowledged or given back at some time.
        ErrorKind::TooManyEphemerals => true,
        _ => error.is_retryable() || error.is_lost(),
    }
}
