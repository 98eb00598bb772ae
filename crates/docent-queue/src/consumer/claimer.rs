//! The single task of a process that claims items of a queue, for all calls that take items.

use super::changes::Sign;
use super::endings;
use super::free_items::FreeItems;
use super::idle::Idle;
use crate::store::{ClaimedItem, Demand, ItemEnd, Leftover, Offer, PendingTake, Store};
use docent_core::recipe::{Stage, full_error, full_path, hand_out, spawn, stage_reached};
use docent_core::{Error, ErrorKind};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

/// Pause before an operation that failed in an outage is retried.
const PAUSE: Duration = Duration::from_millis(200);

/// Maximum time for which a call waits for work in progress after its timeout.
pub(crate) const LATE: Duration = Duration::from_secs(1);

/// Ends of claims in progress.
type Endings = FuturesUnordered<BoxFuture<'static, ()>>;

/// Call that takes items, while it waits for them.
///
/// # On drop
/// The call is withdrawn. Items that were claimed for it are kept for the next call.
pub(crate) struct Request {
    store: Arc<Store>,
    id: u64,
    answer: oneshot::Receiver<Result<Offer, Error>>,
}

impl Request {
    /// Asks for at most `most` items, and for `ahead` more to be claimed for the next calls.
    pub(crate) fn new(store: &Arc<Store>, most: usize, ahead: usize, waits: bool) -> Self {
        let (id, answer) = store.dispatcher.register(most, ahead, waits);
        let request = Self { store: Arc::clone(store), id, answer };
        start(store);
        request
    }

    /// Returns the items; no items if the call does not wait and none is free.
    pub(crate) async fn answer(&mut self) -> Result<Vec<ClaimedItem>, Error> {
        match (&mut self.answer).await {
            Ok(answer) => answer.map(Offer::take),
            // The claiming task ended with the client or with its runtime.
            Err(_) => Err(Error::closed("take", &self.store.path)),
        }
    }

    /// Returns the items if they arrive within `limit`. An attempt in progress at that time is awaited for a
    /// little longer.
    pub(crate) async fn answer_within(&mut self, limit: Duration) -> Result<Vec<ClaimedItem>, Error> {
        if let Ok(answer) = timeout(limit, self.answer()).await {
            return answer;
        }
        if !self.store.dispatcher.stop_waiting(self.id) {
            return Ok(Vec::new());
        }
        match timeout(LATE, self.answer()).await {
            // Nothing arrived in time. A waiting call would not report this error either, because it is
            // transient.
            Ok(Err(error)) if is_passing(&error) => Ok(Vec::new()),
            Ok(answer) => answer,
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // Closed first, so that the dispatcher does not treat this call as waiting.
        self.answer.close();
        self.store.dispatcher.withdraw(self.id);
    }
}

/// Starts the claiming task if it is not running.
pub(crate) fn start(store: &Arc<Store>) {
    if store.dispatcher.start() {
        // Boxed, because the runtime moves a task's future several times.
        spawn(&store.client, Box::pin(Claimer::new(Arc::clone(store)).run()));
    }
}

/// Lists the items concurrently with an acknowledgement if the next call will want a listing, so that the
/// call does not have to wait for it.
pub(crate) fn list_ahead(store: &Arc<Store>) {
    let backlog = store.backlog.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted = backlog.is_wanted_ahead(Instant::now());
    drop(backlog);
    if is_wanted && store.dispatcher.list_ahead() {
        start(store);
    }
}

/// Leaves the `end` of an item that no call has to the claiming task. The receiver is notified when the end
/// is complete.
pub(crate) fn leave(store: &Arc<Store>, item: ClaimedItem, end: ItemEnd) -> oneshot::Receiver<()> {
    let (done, ended) = oneshot::channel();
    store.dispatcher.leave(Leftover { item, end, done: Some(done) });
    start(store);
    ended
}

/// Claims the lowest free items, as many as are wanted, in one write, for all waiting calls.
///
/// Only one write is in progress at a time. With two concurrent claims, a lost connection might repeat the
/// later one first, and first claims would be out of order (decision 8).
struct Claimer {
    store: Arc<Store>,
    free: FreeItems,
    /// Place in the line of idle consumers, while calls wait and no item is free.
    idle: Option<Idle>,
    /// Whether an item may be free that was not free at the last attempt.
    sign: bool,
    /// Whether the dispatcher has recorded the end of the task.
    has_ended: bool,
}

impl Drop for Claimer {
    fn drop(&mut self) {
        // The place is given up before the next task can begin.
        self.idle = None;
        if !self.has_ended {
            self.store.dispatcher.abandon();
        }
    }
}

impl Claimer {
    fn new(store: Arc<Store>) -> Self {
        let free = FreeItems::new(Arc::clone(&store));
        Self { store, free, idle: None, sign: false, has_ended: false }
    }

    async fn run(mut self) {
        let mut endings = Endings::new();
        loop {
            if self.is_stopping() {
                self.store.dispatcher.stop(&Error::closed("take", &self.store.path));
            }
            for leftover in self.store.dispatcher.take_leftovers(Instant::now()) {
                endings.push(Box::pin(endings::end(Arc::clone(&self.store), leftover)));
            }
            poll_endings_with(&mut endings, pin!(self.serve())).await;
            if self.store.dispatcher.take_ahead_request() && !self.is_stopping() {
                poll_endings_with(&mut endings, pin!(self.list_ahead())).await;
            }
            let demand = self.store.dispatcher.demand();
            if demand.now > 0 {
                self.free.begin();
                poll_endings_with(&mut endings, pin!(self.work(demand))).await;
                continue;
            }
            self.idle = None;
            // Once the dispatcher has recorded the end, the next run of the task may begin.
            self.free.save();
            if endings.is_empty() && self.store.dispatcher.end() {
                self.has_ended = true;
                return;
            }
            // An ending notifies the dispatcher when it is complete.
            poll_endings_with(&mut endings, pin!(self.wait_for_change::<()>(None))).await;
            self.free.restore();
        }
    }

    /// Lists the items for the next call.
    async fn list_ahead(&mut self) {
        if let Err(error) = self.free.list_ahead().await {
            // If the error persists, the next call returns it.
            // Event: A consumer could not list the items of a queue in advance; the field `error` has the
            // reason. The next take lists them again.
            tracing::debug!(target: "docent::queue", client = %self.store.client.label(), path = %full_path(&self.store.client, &self.store.path), error = %full_error(&self.store.client, &error), "could not list the items in advance; the next take lists them again");
        }
    }

    /// Returns whether the client is shutting down and no more items may be taken.
    fn is_stopping(&self) -> bool {
        stage_reached(&self.store.client, Stage::Drain).now_or_never().is_some()
    }

    async fn work(&mut self, demand: Demand) {
        if let Err(error) = self.attempt(demand).await {
            self.failed(error).await;
        }
    }

    /// Serves calls with the claimed items on the shelf.
    async fn serve(&mut self) {
        loop {
            let next = std::iter::from_fn(|| self.store.dispatcher.next_served());
            let mut served: Vec<_> = next.collect();
            if served.is_empty() {
                return;
            }
            let handed_out = hand_out_all(&self.store, &mut served).await;
            for (call, mut items) in served {
                items.retain(|item| item.hold.is_held());
                match items.is_empty() {
                    // The call gets the next items instead.
                    true => self.store.dispatcher.requeue(call),
                    false => call.offer(&self.store, items),
                }
            }
            if let Err(error) = handed_out {
                return self.failed(error).await;
            }
        }
    }

    /// Claims items if some are free; otherwise waits for a sign of one.
    async fn attempt(&mut self, demand: Demand) -> Result<(), Error> {
        let now = Instant::now();
        let has_more = self.free.has_more(now);
        if demand.wants_answer || has_more || self.sign || self.idle.is_none() {
            let is_old = has_more || self.free.backlog.is_old(now);
            // The sign came with a listing, which shows whether there are free items. For a call that wants
            // an answer now, only its own listing is recent enough.
            let known = std::mem::take(&mut self.sign) && !demand.wants_answer;
            self.store.dispatcher.attempt_started(demand.until);
            let items = self.free.claim(demand, is_old, known).await?;
            if !items.is_empty() {
                // This process leaves the line, so that the next one watches.
                self.idle = None;
                self.store.dispatcher.shelve(items);
                return Ok(());
            }
            self.store.dispatcher.answer_nothing(&self.store, demand.until);
            if demand.wants_answer {
                return Ok(());
            }
        }
        self.wait().await
    }

    /// Waits in the line until there may be an item, or the dispatcher has changed.
    async fn wait(&mut self) -> Result<(), Error> {
        let mut idle = self.idle.take().unwrap_or_default();
        let sign = {
            let (store, due) = (Arc::clone(&self.store), self.free.backlog.next);
            let sign = Box::pin(async { idle.sign(&store, due).await });
            self.wait_for_change(Some(sign)).await
        };
        self.idle = Some(idle);
        match sign.transpose()? {
            Some(Sign::Listed(listing)) => {
                self.free.fill(listing);
                self.sign = true;
            }
            // The next attempt returns the error.
            Some(Sign::Closed) => self.idle = None,
            Some(Sign::Due) | None => {}
        }
        Ok(())
    }

    /// Waits for a sign of an item, until the dispatcher has changed or an item was kept long enough.
    async fn wait_for_change<T>(&mut self, sign: Option<BoxFuture<'_, T>>) -> Option<T> {
        let store = Arc::clone(&self.store);
        let due = store.dispatcher.wait_deadline();
        let (has_sign, stops) = (sign.is_some(), !self.is_stopping());
        let sign = async {
            match sign {
                Some(sign) => sign.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            sign = sign, if has_sign => return Some(sign),
            () = store.dispatcher.changed() => {}
            () = stage_reached(&store.client, Stage::Drain), if stops => {}
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        None
    }

    /// Reports an error to the calls. Waiting calls do not receive transient errors.
    async fn failed(&mut self, error: Error) {
        self.idle = None;
        self.sign = true;
        let passes = is_passing(&error);
        self.store.dispatcher.answer_error(&error, !passes);
        if passes {
            // Event: A consumer cannot claim items of a queue; the field `error` has the reason, such as an
            // outage. It retries until it succeeds, and waiting calls keep waiting.
            tracing::debug!(target: "docent::queue", client = %self.store.client.label(), path = %full_path(&self.store.client, &self.store.path), error = %full_error(&self.store.client, &error), "cannot claim items; retrying");
            self.store.idle.pause(PAUSE).await;
        }
    }
}

/// Polls `future`, and concurrently the ends of claims, which do not wait for anything else.
async fn poll_endings_with<F: Future>(endings: &mut Endings, mut future: Pin<&mut F>) -> F::Output {
    loop {
        tokio::select! {
            biased;
            Some(()) = endings.next() => {}
            output = &mut future => return output,
        }
    }
}

/// Hands out the served items that are not handed out yet, and some of the items behind them. If that fails,
/// these items are given back, to be claimed again.
///
/// # Errors
/// If a single item is refused. Of several items, some may have been handed out.
async fn hand_out_all(store: &Store, served: &mut [(PendingTake, Vec<ClaimedItem>)]) -> Result<(), Error> {
    let Store { client, path, dispatcher, claim_size, hand_out_size, limits, .. } = store;
    let wanted = served.iter().flat_map(|(_, items)| items).filter(|item| !item.handed_out).count();
    if wanted == 0 {
        return Ok(());
    }
    let mut ahead = dispatcher.take_unhanded(hand_out_size.get().saturating_sub(wanted));
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
            // Event: A consumer could not hand claimed items out; the field `error` has the reason. It gives
            // the items back, and they are claimed again.
            tracing::debug!(target: "docent::queue", client = %client.label(), path = %full_path(client, path), items = items.len(), error = %full_error(client, &error), "failed to hand items out; giving them back");
            let items = items.len();
            served.iter_mut().for_each(|(_, items)| items.retain(|item| item.handed_out));
            ahead.clear();
            // Handing out fewer items together may succeed in time.
            hand_out_size.set(1);
            match error.kind() {
                ErrorKind::NoAuth | ErrorKind::TooManyEphemerals if items > 1 => {
                    claim_size.set(items / 2);
                    Ok(())
                }
                ErrorKind::NoAuth | ErrorKind::TooManyEphemerals => Err(error),
                // If the error persists, the next claim returns it.
                _ => Ok(()),
            }
        }
    };
    dispatcher.shelve_first(ahead);
    result
}

/// Returns whether an error is caused by an outage and passes with time.
///
/// Differs from the errors that `Line::wait_out` waits out: a claim may be lost meanwhile or have an unknown
/// outcome. A missing folder of items means an empty queue, and is not an error.
pub(crate) fn is_passing(error: &Error) -> bool {
    match error.kind() {
        // The client is bound to a session that has ended.
        ErrorKind::SessionChanged => false,
        // A claim of unknown outcome ends with the session in which it was sent (decision 8).
        ErrorKind::OutcomeUnknown => true,
        // Items in work will be acknowledged or given back, which frees nodes.
        ErrorKind::TooManyEphemerals => true,
        _ => error.is_retryable() || error.is_lost(),
    }
}
