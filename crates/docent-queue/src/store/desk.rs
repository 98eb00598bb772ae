use super::offer::{Offered, is_empty, take_all};
use super::{ClaimedItem, Offer, Store};
use crate::layout::DeadReason;
use docent_core::{Error, planted};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// How long an item is kept that was claimed for a call which is gone: for the next call of this process.
pub(super) const KEEP: Duration = Duration::from_secs(2);

/// How long the task that claims waits for the end of an offer before it wants to be woken by it. A call that
/// is polled takes its offer at once: waking the task then would delay what the call does next.
const SETTLE: Duration = Duration::from_millis(5);

/// Where the calls of this process that take items wait, and where items lie that were claimed for them.
#[derive(Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    takers: VecDeque<Taker>,
    /// Id of the next taker.
    next: u64,
    /// Items that are claimed and nobody's, the first first.
    shelf: VecDeque<Kept>,
    leftovers: Vec<Leftover>,
    /// Offers on their way to a taker, each with the time until which it stands.
    offers: Vec<(Offered, Instant)>,
    /// `SETTLE` after the last offer.
    settled: Option<Instant>,
    /// True when the end of an offer wakes the task that claims, also if its items were taken.
    ends_wake: bool,
    /// True while the task runs that claims.
    running: bool,
    /// Set when an item came back since the last listing.
    look_again: bool,
    /// Set when the next call will want a listing.
    look_ahead: bool,
}

/// Call that takes items, as the task that claims sees it.
pub(crate) struct Taker {
    id: u64,
    /// Items that it takes at most, and items that it wants claimed for its next calls.
    pub(crate) most: usize,
    ahead: usize,
    /// False when it wants an answer now.
    waits: bool,
    /// True while an attempt for it is due or under way.
    under_way: bool,
    answer: oneshot::Sender<Result<Offer, Error>>,
}

impl Taker {
    /// Offers items to it. They go back to the shelf when it is gone.
    pub(crate) fn offer(self, store: &Arc<Store>, items: Vec<ClaimedItem>) {
        // The drop of an offer that it does not get sees to the items.
        drop(self.answer.send(Ok(Offer::new(store, items))));
    }
}

/// An item on the shelf.
struct Kept {
    item: ClaimedItem,
    until: Instant,
}

/// A claimed item that no call has any more.
pub(crate) struct Leftover {
    pub(crate) item: ClaimedItem,
    pub(crate) end: ItemEnd,
    /// Notified when that is done.
    pub(crate) done: Option<oneshot::Sender<()>>,
}

/// End of a claimed item that no call has any more.
#[derive(Debug)]
pub(crate) enum ItemEnd {
    /// It goes back to its place, as if it had not been claimed.
    Unclaim,
    /// It goes back to its place with its number of deliveries, and is handed out from a time on:
    /// milliseconds since the Unix epoch.
    Delay { until: u64, deliveries: Option<u32> },
    /// It goes to the dead letters.
    Bury(DeadReason, String),
}

impl Leftover {
    fn unclaim(item: ClaimedItem) -> Self {
        Self { item, end: ItemEnd::Unclaim, done: None }
    }
}

/// Items that are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demand {
    /// By calls.
    pub(crate) now: usize,
    /// For their next calls.
    pub(crate) ahead: usize,
    /// True when some call wants an answer now.
    pub(crate) asked: bool,
    /// Id behind the last call.
    pub(crate) until: u64,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call wait here. Returns its id, and what it is answered by.
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
        state.takers.push_back(Taker { id, most, ahead, waits, under_way: true, answer });
        drop(state);
        self.changed.notify_one();
        (id, answered)
    }

    /// Forgets a call.
    pub(crate) fn withdraw(&self, id: u64) {
        let mut state = self.state();
        let before = state.takers.len();
        state.takers.retain(|taker| taker.id != id);
        let was_waiting = state.takers.len() < before;
        drop(state);
        if was_waiting {
            self.changed.notify_one();
        }
    }

    /// Lets a call wait no longer than for the attempt that is under way for it. False when there is none.
    pub(crate) fn stop_waiting(&self, id: u64) -> bool {
        let mut state = self.state();
        let taker = state.takers.iter_mut().find(|taker| taker.id == id);
        match taker {
            Some(taker) => {
                taker.waits = false;
                let is_under_way = taker.under_way;
                drop(state);
                // It is answered as one that wants an answer now.
                self.changed.notify_one();
                is_under_way
            }
            // It is being answered.
            None => true,
        }
    }

    /// Leaves an item to the task that claims, which must be running.
    pub(crate) fn leave(&self, leftover: Leftover) {
        self.state().leftovers.push(leftover);
        self.changed.notify_one();
    }

    /// Says that the last listing is not to be relied on: an item came back.
    pub(crate) fn look_again(&self) {
        self.state().look_again = true;
        self.changed.notify_one();
    }

    /// Asks for a listing for the next call. False when there is work for the task that claims, which lists
    /// as that requires.
    pub(crate) fn look_ahead(&self) -> bool {
        let mut state = self.state();
        let State { takers, shelf, offers, .. } = &*state;
        let is_wanted = takers.is_empty() && shelf.is_empty() && offers.is_empty();
        state.look_ahead |= is_wanted;
        drop(state);
        if is_wanted {
            self.changed.notify_one();
        }
        is_wanted
    }

    /// True when a listing for the next call is wanted, at the first time that this is asked.
    pub(crate) fn takes_look_ahead(&self) -> bool {
        std::mem::take(&mut self.state().look_ahead)
    }

    /// True when the task that claims must be started.
    pub(crate) fn start(&self) -> bool {
        !std::mem::replace(&mut self.state().running, true)
    }

    /// For the task that claims: ends it if there is nothing to do. False when there is.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        let State { takers, shelf, leftovers, offers, look_ahead, .. } = &*state;
        // An offer without items waits for its call alone.
        let has_offered = offers.iter().any(|(offered, _)| !is_empty(offered));
        let is_idle = takers.is_empty() && shelf.is_empty() && leftovers.is_empty();
        let is_done = is_idle && !has_offered && !look_ahead;
        state.running = !is_done;
        is_done
    }

    /// The task that claims is gone: nobody is answered any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.running = false;
        let (takers, shelf) = (std::mem::take(&mut state.takers), std::mem::take(&mut state.shelf));
        let leftovers = std::mem::take(&mut state.leftovers);
        let offered: Vec<_> = state.offers.iter().flat_map(|(offered, _)| take_all(offered)).collect();
        // Their drops look at the desk, too.
        drop(state);
        drop((takers, shelf, leftovers, offered));
    }

    /// Resolves when something changed here.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Says whether an item came back since this was asked last.
    pub(crate) fn take_look_again(&self) -> bool {
        std::mem::take(&mut self.state().look_again)
    }

    pub(crate) fn demand(&self) -> Demand {
        let mut state = self.state();
        state.takers.retain(|taker| !taker.answer.is_closed());
        let mut demand = Demand { until: state.next, ..Demand::default() };
        for taker in &state.takers {
            demand.now += taker.most;
            demand.ahead = demand.ahead.max(taker.ahead);
            demand.asked |= !taker.waits;
        }
        demand
    }

    /// Notes that an attempt for calls before `until` is under way.
    pub(crate) fn trying(&self, until: u64) {
        let mut state = self.state();
        state.takers.iter_mut().filter(|taker| taker.id < until).for_each(|taker| taker.under_way = true);
    }

    /// Puts claimed items on the shelf, behind those that are there.
    pub(crate) fn shelve(&self, items: impl IntoIterator<Item = ClaimedItem>) {
        let until = Instant::now() + KEEP;
        self.state().shelf.extend(items.into_iter().map(|item| Kept { item, until }));
    }

    /// The next call that waits, with items from the shelf for it.
    pub(crate) fn next_served(&self) -> Option<(Taker, Vec<ClaimedItem>)> {
        let mut state = self.state();
        let lost: Vec<_>;
        (state.shelf, lost) = {
            let shelf = std::mem::take(&mut state.shelf);
            let (held, lost): (Vec<_>, Vec<_>) = shelf.into_iter().partition(|kept| kept.item.hold.is_held());
            (held.into(), lost)
        };
        state.takers.retain(|taker| !taker.answer.is_closed());
        let served = match state.shelf.is_empty() {
            true => None,
            false => state.takers.pop_front(),
        };
        let served = served.map(|taker| {
            let count = taker.most.min(state.shelf.len());
            let items = state.shelf.drain(..count).map(|kept| kept.item).collect();
            (taker, items)
        });
        drop(state);
        drop(lost);
        served
    }

    /// Takes the first items from the shelf that are not handed out, at most `most`.
    pub(crate) fn take_unhanded(&self, most: usize) -> Vec<ClaimedItem> {
        let mut state = self.state();
        let ahead = state.shelf.iter().take_while(|kept| !kept.item.handed_out).take(most).count();
        state.shelf.drain(..ahead).map(|kept| kept.item).collect()
    }

    /// Puts claimed items on the shelf, before those that are there.
    pub(crate) fn shelve_first(&self, items: Vec<ClaimedItem>) {
        let until = Instant::now() + KEEP;
        let mut state = self.state();
        items.into_iter().rev().for_each(|item| state.shelf.push_front(Kept { item, until }));
    }

    /// Lets a call wait on that was about to be served.
    pub(crate) fn unserved(&self, taker: Taker) {
        self.state().takers.push_front(taker);
    }

    /// Tells all calls an error, and keeps no items for later ones any more.
    pub(crate) fn stop(&self, error: &Error) {
        self.answer_error(error, true);
        let mut state = self.state();
        let shelf = std::mem::take(&mut state.shelf);
        state.leftovers.extend(shelf.into_iter().map(|kept| Leftover::unclaim(kept.item)));
    }

    /// Tells calls before `until` that want an answer now that there is no item.
    pub(crate) fn answer_nothing(&self, store: &Arc<Store>, until: u64) {
        self.answer(|taker| !taker.waits && taker.id < until, |taker| taker.offer(store, Vec::new()));
        let mut state = self.state();
        state.takers.iter_mut().filter(|taker| taker.id < until).for_each(|taker| taker.under_way = false);
    }

    /// Tells calls an error: all of them, or those that want an answer now.
    pub(crate) fn answer_error(&self, error: &Error, also_waiting: bool) {
        self.answer(
            |taker| also_waiting || !taker.waits,
            |taker| drop(taker.answer.send(Err(error.clone()))),
        );
    }

    fn answer(&self, is_meant: impl Fn(&Taker) -> bool, answer: impl Fn(Taker)) {
        let mut state = self.state();
        let takers = std::mem::take(&mut state.takers);
        let (meant, others): (Vec<_>, Vec<_>) = takers.into_iter().partition(is_meant);
        state.takers = others.into();
        // An offer looks at the desk, too.
        drop(state);
        meant.into_iter().for_each(answer);
    }

    /// Items that shall be nobody's: those left here, and those that were kept long enough.
    pub(crate) fn take_leftovers(&self, now: Instant) -> Vec<Leftover> {
        let mut state = self.state();
        let mut leftovers = std::mem::take(&mut state.leftovers);
        let shelf = std::mem::take(&mut state.shelf);
        let (old, kept): (Vec<_>, Vec<_>) = shelf.into_iter().partition(|kept| kept.until <= now);
        state.shelf = kept.into();
        // Their calls were not polled since: they find an empty offer, and wait on.
        let ended = state.offers.iter().filter(|(_, until)| *until <= now);
        let ended: Vec<_> = ended.flat_map(|(offered, _)| take_all(offered)).collect();
        drop(state);
        if planted!(LateClaimForgotten) {
            std::mem::forget(old);
            return leftovers;
        }
        leftovers.extend(old.into_iter().map(|kept| kept.item).chain(ended).map(Leftover::unclaim));
        leftovers
    }

    /// Notes items on their way to a taker.
    pub(super) fn offered(&self, items: Vec<ClaimedItem>) -> Offered {
        let offered = Offered::new(Mutex::new(items));
        let keep = if planted!(OfferStandsForEver) { KEEP * 1000 } else { KEEP };
        let now = Instant::now();
        let mut state = self.state();
        state.offers.push((Arc::clone(&offered), now + keep));
        state.settled = Some(now + SETTLE);
        drop(state);
        // The task that claims sees to the end of it.
        self.changed.notify_one();
        offered
    }

    /// Notes that an offer has ended. Items that were not taken go to the shelf, until a time.
    pub(super) fn offer_ended(&self, offered: &Offered, until: Instant) {
        let mut state = self.state();
        state.offers.retain(|(other, _)| !Arc::ptr_eq(other, offered));
        let items = take_all(offered);
        let wakes = state.ends_wake || !items.is_empty();
        for item in items.into_iter().rev() {
            state.shelf.push_front(Kept { item, until });
        }
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Time until which the task that claims may wait for a change: the first item on the shelf was kept long
    /// enough then, or the first offer does not stand any more, or the last one was most likely taken.
    pub(crate) fn rests_until(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.state();
        let offers = state.offers.iter().filter(|(offered, _)| !is_empty(offered)).map(|(_, until)| *until);
        let first = offers.min();
        let settled = state.settled.filter(|settled| first.is_some() && now < *settled);
        let kept = state.shelf.iter().map(|kept| kept.until).min();
        state.ends_wake = settled.is_none();
        [kept, first, settled].into_iter().flatten().min()
    }
}
