use super::{ClaimedItem, Store};
use crate::layout::DeadReason;
use docent_core::{Error, planted};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Time for which an item that was claimed for a dropped call is kept for the next call of this process.
const KEEP: Duration = Duration::from_secs(2);

/// Time that the claiming task allows for an offer to be taken before it asks to be woken by the end of the
/// offer. A call that is polled takes its offer immediately, and waking the task then would delay what the
/// call does next.
const SETTLE: Duration = Duration::from_millis(5);

/// Place where the calls of this process that take items wait, and where items are kept that were claimed for
/// them.
#[derive(Default)]
pub(crate) struct Dispatcher {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    calls: VecDeque<PendingTake>,
    /// Id of the next call.
    next: u64,
    /// Items that are claimed but not assigned to a call, in order.
    shelf: VecDeque<ShelvedItem>,
    leftovers: Vec<Leftover>,
    /// Offers on their way to a call, each with the time until which it is valid.
    offers: Vec<(Offered, Instant)>,
    /// Time of the last offer plus `SETTLE`.
    settled: Option<Instant>,
    /// Whether the end of an offer wakes the claiming task even if the items were taken.
    ends_wake: bool,
    /// Whether the claiming task is running.
    running: bool,
    /// Whether an item came back since the last listing.
    needs_listing: bool,
    /// Whether the next call will want a listing.
    list_ahead: bool,
}

/// Call that takes items, from the viewpoint of the claiming task.
pub(crate) struct PendingTake {
    id: u64,
    /// Maximum number of items that the call takes.
    pub(crate) most: usize,
    ahead: usize,
    /// Whether the call waits for an item; false if it wants an answer now.
    waits: bool,
    /// Whether an attempt for the call is due or in progress.
    under_way: bool,
    answer: oneshot::Sender<Result<Offer, Error>>,
}

impl PendingTake {
    /// Offers items to the call. If the call was dropped, the items go back to the shelf.
    pub(crate) fn offer(self, store: &Arc<Store>, items: Vec<ClaimedItem>) {
        // If the call does not receive the offer, the drop of the offer returns the items.
        drop(self.answer.send(Ok(Offer::new(store, items))));
    }
}

/// An item on the shelf.
struct ShelvedItem {
    item: ClaimedItem,
    until: Instant,
}

/// A claimed item that no call has.
pub(crate) struct Leftover {
    pub(crate) item: ClaimedItem,
    pub(crate) end: ItemEnd,
    /// Notified when the end is complete.
    pub(crate) done: Option<oneshot::Sender<()>>,
}

/// End of a claimed item that no call has.
#[derive(Debug)]
pub(crate) enum ItemEnd {
    /// The item returns to its place, as if it had not been claimed.
    Unclaim,
    /// The item returns to its place with its number of deliveries, and may be handed out from this time, in
    /// milliseconds since the Unix epoch.
    Delay(u64),
    /// The item is moved to the dead letters.
    Bury(DeadReason, String),
}

impl Leftover {
    fn unclaim(item: ClaimedItem) -> Self {
        Self { item, end: ItemEnd::Unclaim, done: None }
    }
}

/// Number of items that are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demand {
    /// Number of items for the waiting calls.
    pub(crate) now: usize,
    /// Number of additional items for their next calls.
    pub(crate) ahead: usize,
    /// Whether a call wants an answer now.
    pub(crate) wants_answer: bool,
    /// Id after that of the last call.
    pub(crate) until: u64,
}

impl Dispatcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call. Returns its id, and the receiver of its answer.
    pub(crate) fn register(
        &self,
        most: usize,
        ahead: usize,
        waits: bool,
    ) -> (u64, oneshot::Receiver<Result<Offer, Error>>) {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.calls.push_back(PendingTake { id, most, ahead, waits, under_way: true, answer });
        drop(state);
        self.changed.notify_one();
        (id, answered)
    }

    /// Forgets a call.
    pub(crate) fn withdraw(&self, id: u64) {
        let mut state = self.state();
        let before = state.calls.len();
        state.calls.retain(|call| call.id != id);
        let was_waiting = state.calls.len() < before;
        drop(state);
        if was_waiting {
            self.changed.notify_one();
        }
    }

    /// Makes a call wait only for the attempt in progress. Returns false if there is none.
    pub(crate) fn stop_waiting(&self, id: u64) -> bool {
        let mut state = self.state();
        let call = state.calls.iter_mut().find(|call| call.id == id);
        match call {
            Some(call) => {
                call.waits = false;
                let is_under_way = call.under_way;
                drop(state);
                // The call is answered like a call that wants an answer now.
                self.changed.notify_one();
                is_under_way
            }
            // The call is being answered.
            None => true,
        }
    }

    /// Leaves an item to the claiming task, which must be running.
    pub(crate) fn leave(&self, leftover: Leftover) {
        self.state().leftovers.push(leftover);
        self.changed.notify_one();
    }

    /// Marks the last listing as outdated, because an item came back.
    pub(crate) fn request_listing(&self) {
        self.state().needs_listing = true;
        self.changed.notify_one();
    }

    /// Requests a listing for the next call. Returns false if the claiming task has other work, for which it
    /// lists the items as necessary.
    pub(crate) fn list_ahead(&self) -> bool {
        let mut state = self.state();
        let State { calls, shelf, offers, .. } = &*state;
        let is_wanted = calls.is_empty() && shelf.is_empty() && offers.is_empty();
        state.list_ahead |= is_wanted;
        drop(state);
        if is_wanted {
            self.changed.notify_one();
        }
        is_wanted
    }

    /// Returns whether a listing for the next call was requested, and clears the request.
    pub(crate) fn take_ahead_request(&self) -> bool {
        std::mem::take(&mut self.state().list_ahead)
    }

    /// Returns whether the claiming task has to be started.
    pub(crate) fn start(&self) -> bool {
        !std::mem::replace(&mut self.state().running, true)
    }

    /// Ends the claiming task, which calls this method, if there is no work left. Returns false if there is.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        let State { calls, shelf, leftovers, offers, list_ahead, .. } = &*state;
        // An offer without items concerns only its call.
        let has_offered = offers.iter().any(|(offered, _)| !is_empty(offered));
        let is_idle = calls.is_empty() && shelf.is_empty() && leftovers.is_empty();
        let is_done = is_idle && !has_offered && !list_ahead;
        state.running = !is_done;
        is_done
    }

    /// Records that the claiming task has ended: calls are no longer answered.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.running = false;
        let (calls, shelf) = (std::mem::take(&mut state.calls), std::mem::take(&mut state.shelf));
        let leftovers = std::mem::take(&mut state.leftovers);
        let offered: Vec<_> = state.offers.iter().flat_map(|(offered, _)| take_all(offered)).collect();
        // Dropping these values locks the dispatcher as well.
        drop(state);
        drop((calls, shelf, leftovers, offered));
    }

    /// Resolves when the state of the dispatcher has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns whether an item came back since the last call of this method.
    pub(crate) fn take_listing_request(&self) -> bool {
        std::mem::take(&mut self.state().needs_listing)
    }

    pub(crate) fn demand(&self) -> Demand {
        let mut state = self.state();
        state.calls.retain(|call| !call.answer.is_closed());
        let mut demand = Demand { until: state.next, ..Demand::default() };
        for call in &state.calls {
            demand.now += call.most;
            demand.ahead = demand.ahead.max(call.ahead);
            demand.wants_answer |= !call.waits;
        }
        demand
    }

    /// Records that an attempt for the calls before `until` is in progress.
    pub(crate) fn attempt_started(&self, until: u64) {
        let mut state = self.state();
        state.calls.iter_mut().filter(|call| call.id < until).for_each(|call| call.under_way = true);
    }

    /// Puts claimed items on the shelf, behind the items on it.
    pub(crate) fn shelve(&self, items: impl IntoIterator<Item = ClaimedItem>) {
        let until = Instant::now() + KEEP;
        self.state().shelf.extend(items.into_iter().map(|item| ShelvedItem { item, until }));
    }

    /// Returns the next waiting call, with items from the shelf for it.
    pub(crate) fn next_served(&self) -> Option<(PendingTake, Vec<ClaimedItem>)> {
        let mut state = self.state();
        let lost: Vec<_>;
        (state.shelf, lost) = {
            let shelf = std::mem::take(&mut state.shelf);
            let (held, lost): (Vec<_>, Vec<_>) =
                shelf.into_iter().partition(|shelved| shelved.item.hold.is_held());
            (held.into(), lost)
        };
        state.calls.retain(|call| !call.answer.is_closed());
        let served = match state.shelf.is_empty() {
            true => None,
            false => state.calls.pop_front(),
        };
        let served = served.map(|call| {
            let count = call.most.min(state.shelf.len());
            let items = state.shelf.drain(..count).map(|shelved| shelved.item).collect();
            (call, items)
        });
        drop(state);
        drop(lost);
        served
    }

    /// Takes the first items from the shelf that are not handed out, at most `most`.
    pub(crate) fn take_unhanded(&self, most: usize) -> Vec<ClaimedItem> {
        let mut state = self.state();
        let ahead = state.shelf.iter().take_while(|shelved| !shelved.item.handed_out).take(most).count();
        state.shelf.drain(..ahead).map(|shelved| shelved.item).collect()
    }

    /// Puts claimed items on the shelf, before the items on it.
    pub(crate) fn shelve_first(&self, items: Vec<ClaimedItem>) {
        let until = Instant::now() + KEEP;
        let mut state = self.state();
        items.into_iter().rev().for_each(|item| state.shelf.push_front(ShelvedItem { item, until }));
    }

    /// Makes a call wait again that was about to be served.
    pub(crate) fn requeue(&self, call: PendingTake) {
        self.state().calls.push_front(call);
    }

    /// Answers all calls with an error, and gives back the items that are kept for later calls.
    pub(crate) fn stop(&self, error: &Error) {
        self.answer_error(error, true);
        let mut state = self.state();
        let shelf = std::mem::take(&mut state.shelf);
        state.leftovers.extend(shelf.into_iter().map(|shelved| Leftover::unclaim(shelved.item)));
    }

    /// Answers the calls before `until` that want an answer now: there is no item.
    pub(crate) fn answer_nothing(&self, store: &Arc<Store>, until: u64) {
        self.answer(|call| !call.waits && call.id < until, |call| call.offer(store, Vec::new()));
        let mut state = self.state();
        state.calls.iter_mut().filter(|call| call.id < until).for_each(|call| call.under_way = false);
    }

    /// Answers calls with an error: all calls, or those that want an answer now.
    pub(crate) fn answer_error(&self, error: &Error, also_waiting: bool) {
        self.answer(|call| also_waiting || !call.waits, |call| drop(call.answer.send(Err(error.clone()))));
    }

    fn answer(&self, is_meant: impl Fn(&PendingTake) -> bool, answer: impl Fn(PendingTake)) {
        let mut state = self.state();
        let calls = std::mem::take(&mut state.calls);
        let (meant, remaining): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_meant);
        state.calls = remaining.into();
        // An offer locks the dispatcher as well.
        drop(state);
        meant.into_iter().for_each(answer);
    }

    /// Returns the items that no call will take: the leftovers, and the items that were kept long enough.
    pub(crate) fn take_leftovers(&self, now: Instant) -> Vec<Leftover> {
        let mut state = self.state();
        let mut leftovers = std::mem::take(&mut state.leftovers);
        let shelf = std::mem::take(&mut state.shelf);
        let (old, shelved): (Vec<_>, Vec<_>) = shelf.into_iter().partition(|shelved| shelved.until <= now);
        state.shelf = shelved.into();
        // The calls of these offers were not polled in time: they find an empty offer, and keep waiting.
        let ended = state.offers.iter().filter(|(_, until)| *until <= now);
        let ended: Vec<_> = ended.flat_map(|(offered, _)| take_all(offered)).collect();
        drop(state);
        if planted!(LateClaimForgotten) {
            std::mem::forget(old);
            return leftovers;
        }
        leftovers.extend(old.into_iter().map(|shelved| shelved.item).chain(ended).map(Leftover::unclaim));
        leftovers
    }

    /// Records items on their way to a call.
    fn offered(&self, items: Vec<ClaimedItem>) -> Offered {
        let offered = Offered::new(Mutex::new(items));
        let keep = if planted!(OfferStandsForEver) { KEEP * 1000 } else { KEEP };
        let now = Instant::now();
        let mut state = self.state();
        state.offers.push((Arc::clone(&offered), now + keep));
        state.settled = Some(now + SETTLE);
        drop(state);
        // The claiming task handles the end of the offer.
        self.changed.notify_one();
        offered
    }

    /// Records that an offer has ended. Items that were not taken are kept on the shelf until the time
    /// `until`.
    fn offer_ended(&self, offered: &Offered, until: Instant) {
        let mut state = self.state();
        state.offers.retain(|(other, _)| !Arc::ptr_eq(other, offered));
        let items = take_all(offered);
        let wakes = state.ends_wake || !items.is_empty();
        for item in items.into_iter().rev() {
            state.shelf.push_front(ShelvedItem { item, until });
        }
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Returns the time until which the claiming task may wait for a change. At this time the first item on
    /// the shelf was kept long enough, or the first offer expires, or the last offer has most likely been
    /// taken.
    pub(crate) fn wait_deadline(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.state();
        let offers = state.offers.iter().filter(|(offered, _)| !is_empty(offered)).map(|(_, until)| *until);
        let first = offers.min();
        let settled = state.settled.filter(|settled| first.is_some() && now < *settled);
        let shelved = state.shelf.iter().map(|shelved| shelved.until).min();
        state.ends_wake = settled.is_none();
        [shelved, first, settled].into_iter().flatten().min()
    }
}

/// Items of an offer. The dispatcher shares them, and takes them back from a call that is not polled.
type Offered = Arc<Mutex<Vec<ClaimedItem>>>;

/// Items on their way to a call. An offer is valid for two seconds, so a call that is not polled does not
/// keep items from other calls.
///
/// # On drop
/// Items that were not taken go to the shelf.
pub(crate) struct Offer {
    store: Arc<Store>,
    items: Offered,
}

impl Offer {
    pub(crate) fn new(store: &Arc<Store>, items: Vec<ClaimedItem>) -> Self {
        Self { store: Arc::clone(store), items: store.dispatcher.offered(items) }
    }

    /// Returns the items; no items if the offer has expired.
    pub(crate) fn take(self) -> Vec<ClaimedItem> {
        take_all(&self.items)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let keep = if self.store.lock.is_some() { Duration::ZERO } else { KEEP };
        self.store.dispatcher.offer_ended(&self.items, Instant::now() + keep);
    }
}

fn take_all(offered: &Offered) -> Vec<ClaimedItem> {
    std::mem::take(&mut *offered.lock().unwrap_or_else(PoisonError::into_inner))
}

fn is_empty(offered: &Offered) -> bool {
    offered.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}
