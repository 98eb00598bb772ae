//! The one task of a process that claims items of a queue, for all calls that take them.

use super::endings;
use super::idle::{Idle, Sign};
use crate::layout::DeadReason;
use crate::store::{Backlog, ClaimedItem, Demand, Leftover, Listing, Store, Taker, ensure_folder};
use docent_core::recipe::{ClaimResult, Hold, claim_all, spawn};
use docent_core::{Error, ErrorKind, Node, planted};
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// Before an operation is tried again that failed in an outage.
const PAUSE: Duration = Duration::from_millis(200);
/// Most items that are claimed in one write.
const MOST: usize = 1000;
/// How long others are expected to claim the same items, once they did.
const CONTENDED: Duration = Duration::from_millis(500);
/// Items of a backlog up to which a new listing costs less than a claim in vain.
const SHORT: usize = 200;
/// Claims in vain after which it looks what is claimed.
const LOOK_AFTER: usize = 3;

/// Ends of claims that are under way.
type Endings = FuturesUnordered<BoxFuture<'static, ()>>;

/// Starts the task that claims, if it does not run.
pub(crate) fn start(store: &Arc<Store>) {
    if store.desk.start() {
        spawn(&store.client, Claimer::new(Arc::clone(store)).run());
    }
}

/// Leaves an item that nobody gets to the task that claims: it goes to the dead letters with `reason`, back
/// to its place without. The receiver is told when that is done.
pub(crate) fn leave(
    store: &Arc<Store>,
    item: ClaimedItem,
    reason: Option<(DeadReason, String)>,
) -> oneshot::Receiver<()> {
    let (done, ended) = oneshot::channel();
    store.desk.leave(Leftover { item, reason, done: Some(done) });
    start(store);
    ended
}

/// Claims the lowest items that are free, as many as are wanted, in one write.
///
/// One write is under way at a time: of two claims under way a lost link might repeat the later one first,
/// and first claims would be out of order (decision 8).
struct Claimer {
    store: Arc<Store>,
    backlog: Backlog,
    /// The place in the line of idle consumers, while calls wait and nothing is free.
    idle: Option<Idle>,
    /// True when something may be free that was not at the last attempt.
    sign: bool,
    /// Time until which others are expected to claim the same items.
    contended: Instant,
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
            store,
            backlog: Backlog::default(),
            idle: None,
            sign: true,
            contended: Instant::now(),
        }
    }

    async fn run(mut self) {
        let mut endings = Endings::new();
        loop {
            for leftover in self.store.desk.take_leftovers(Instant::now()) {
                endings.push(Box::pin(endings::end(Arc::clone(&self.store), leftover)));
            }
            beside(&mut endings, self.serve()).await;
            let demand = self.store.desk.demand();
            if demand.now > 0 {
                beside(&mut endings, self.work(demand)).await;
                continue;
            }
            self.idle = None;
            if endings.is_empty() && self.store.desk.end() {
                self.running.0 = None;
                return;
            }
            // An ending tells the desk when it is done.
            beside(&mut endings, self.rest::<()>(None)).await;
        }
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
            let served: Vec<_> = next.map(|(taker, items)| serve(&self.store, taker, items)).collect();
            if served.is_empty() {
                return;
            }
            // A call whose items were lost meanwhile gets the next ones.
            join_all(served).await;
        }
    }

    /// Claims items if some are free; waits for a sign of one otherwise.
    async fn attempt(&mut self, demand: Demand) -> Result<(), Error> {
        let now = Instant::now();
        let turned = self.backlog.has_turned(now);
        let came_back = self.store.desk.take_look_again();
        if demand.asked || turned || came_back || self.sign || self.idle.is_none() {
            let is_old = turned || came_back || self.backlog.is_old(now);
            // A sign came with a listing, which says whether there is anything. To a call that wants an
            // answer now only a listing of its own says so.
            let known = std::mem::take(&mut self.sign) && !demand.asked;
            self.store.desk.trying(demand.until);
            let items = self.claim(demand, is_old, known).await?;
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
            let store = Arc::clone(&self.store);
            let sign = Box::pin(async { idle.sign(&store).await });
            self.rest(Some(sign)).await
        };
        self.idle = Some(idle);
        match sign.transpose()? {
            Some(Sign::Listed(listing)) => {
                self.fill(listing);
                self.sign = true;
            }
            // The next attempt says so.
            Some(Sign::Closed) => self.idle = None,
            None => {}
        }
        Ok(())
    }

    /// Waits for a sign of an item, until the desk has changed or something kept or delayed is due.
    async fn rest<T>(&mut self, sign: Option<BoxFuture<'_, T>>) -> Option<T> {
        let store = Arc::clone(&self.store);
        let due = [store.desk.kept_until(), self.backlog.next().filter(|_| sign.is_some())];
        let due = due.into_iter().flatten().min();
        let has_sign = sign.is_some();
        let sign = async {
            match sign {
                Some(sign) => sign.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            sign = sign, if has_sign => return Some(sign),
            () = store.desk.changed() => {}
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        None
    }

    /// Claims the lowest items that are free; none when none is. The last listing may be too old; `known`
    /// when nothing else can be free than it shows.
    async fn claim(&mut self, demand: Demand, is_old: bool, known: bool) -> Result<Vec<ClaimedItem>, Error> {
        let (mut now, mut ahead) = (demand.now.min(MOST), demand.ahead);
        let (mut listed, mut in_vain) = (known || is_old, 0);
        if is_old {
            self.list().await?;
        } else if !known && Instant::now() < self.contended {
            listed = self.look().await?;
        }
        loop {
            let names = self.backlog.first((now + ahead).min(MOST));
            if names.is_empty() {
                if listed {
                    return Ok(Vec::new());
                }
                self.list().await?;
                listed = true;
                continue;
            }
            // What may not be read is handed out to nobody.
            let counted = if self.store.unreadable.load(Ordering::Relaxed) { 0 } else { now };
            let claimed = match self.claim_these(&names, counted).await {
                // Fewer fit.
                Err(error) if names.len() > 1 && is_too_much(&error) => {
                    now = now.min(names.len()).div_ceil(2);
                    ahead = (names.len() / 2).saturating_sub(now);
                    continue;
                }
                claimed => claimed.inspect_err(|error| self.note_unreadable(error))?,
            };
            match claimed {
                ClaimResult::All(claims) => {
                    self.backlog.taken(claims.len());
                    self.store.unreadable.store(false, Ordering::Relaxed);
                    let claims = names.into_iter().zip(claims).enumerate();
                    let claimed = claims.filter_map(|(index, (name, claim))| {
                        claimed_item(&self.store, name, claim, index < counted)
                    });
                    let claimed: Vec<_> = claimed.collect();
                    if !claimed.is_empty() {
                        return Ok(claimed);
                    }
                }
                // Another process claims the same items, or has finished this one since the listing: the next
                // attempt is for fewer.
                ClaimResult::Taken(index) | ClaimResult::NoNode(index) => {
                    (now, ahead) = (now.div_ceil(2), ahead / 2);
                    self.backlog.forget(&names[index]);
                    self.contended = Instant::now() + CONTENDED;
                    in_vain += 1;
                    if in_vain % LOOK_AFTER == 0 {
                        listed |= self.look().await?;
                    }
                }
                ClaimResult::NoParent(_) => {
                    ensure_folder(&self.store.client, &self.store.paths.claims).await?;
                }
            }
        }
    }

    fn note_unreadable(&self, error: &Error) {
        if error.kind() == ErrorKind::NoAuth {
            self.store.unreadable.store(true, Ordering::Relaxed);
        }
    }

    /// Claims items, the first `counted` of them as handed out.
    async fn claim_these(&mut self, names: &[String], counted: usize) -> Result<ClaimResult, Error> {
        let Store { client, paths, .. } = &*self.store;
        let request = |(index, name): (usize, &String)| {
            paths.claim_request(name, index < counted && !planted!(HandOutNotCounted))
        };
        let requests: Vec<_> = names.iter().enumerate().map(request).collect();
        claim_all(client, &requests, "queue").await
    }

    /// Finds out what others claimed since the last listing; true when the items were listed again, too.
    async fn look(&mut self) -> Result<bool, Error> {
        if self.backlog.len() <= SHORT {
            self.list().await?;
            return Ok(true);
        }
        self.backlog.forget_claimed(&self.store.items.claimed().await?);
        Ok(false)
    }

    async fn list(&mut self) -> Result<(), Error> {
        let listing = self.store.items.list().await?;
        self.fill(listing);
        Ok(())
    }

    fn fill(&mut self, Listing { folder, items, claimed }: Listing) {
        let aside = &self.store.aside;
        aside.keep_only(folder, &items);
        self.store.tell_depth(items.len());
        self.backlog.fill(items, &claimed, aside);
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
async fn beside<F: Future>(endings: &mut Endings, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        tokio::select! {
            biased;
            Some(()) = endings.next() => {}
            output = &mut future => return output,
        }
    }
}

/// True for an error of claims of which fewer might be made.
fn is_too_much(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::TooManyEphemerals)
}

fn claimed_item(
    store: &Store,
    name: String,
    (hold, node): (Hold, Option<Node>),
    counted: bool,
) -> Option<ClaimedItem> {
    // Somebody deleted the item by hand: its claim is dropped.
    let node = node?;
    tracing::debug!(path = %store.path, item = %name, fence = %hold.fence(), "item claimed");
    store.tell_head(node.stat.created);
    Some(ClaimedItem { hold, name, node, counted, counted_since: 0 })
}

/// Offers items to a call, once they are counted as handed out.
async fn serve(store: &Arc<Store>, taker: Taker, items: Vec<ClaimedItem>) {
    let counted = join_all(items.into_iter().map(|item| count(store, item))).await;
    let items: Vec<_> = counted.into_iter().flatten().collect();
    match items.is_empty() {
        true => store.desk.unserved(taker),
        false => taker.offer(store, items),
    }
}

/// Counts an item as handed out, if its claim did not; `None` when it was lost meanwhile.
async fn count(store: &Store, mut item: ClaimedItem) -> Option<ClaimedItem> {
    if item.counted || !store.paths.counts() {
        return Some(item);
    }
    let counter = store.paths.counter(&item.name);
    let count = item.hold.transaction();
    let count = count.create(&counter, "", docent_core::CreateMode::Persistent).delete(&counter, None);
    match count.commit_exactly().await {
        Ok(_) => {
            item.counted = true;
            item.counted_since += 1;
            Some(item)
        }
        Err(error) => {
            tracing::debug!(path = %store.path, item = %item.name, %error, "an item could not be counted");
            None
        }
    }
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
        _ => error.is_retryable() || error.is_lost(),
    }
}
