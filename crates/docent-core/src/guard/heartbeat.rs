//! Keeps the lease of a generation while guards live, and tells guards when they are lost.

use super::{HoldState, LostReason, REVOKE, SessionGeneration};
use crate::session::{Cause, Fired, Lane, Outcome, Pending};
use crate::time::{Timestamp, sleep_until};
use bytes::Bytes;
use docent_proto::{Code, EventKind, MultiOp, MultiResult, Request, Response};
use futures_util::future::{FutureExt, OptionFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

/// Guards checked by one heartbeat.
const GUARDS_PER_HEARTBEAT: usize = 64;

/// Guards whose beginning one heartbeat records before it checks those whose turn it is: so that a new one
/// does not wait until thousands were checked, nor keeps them from being checked.
const RECORDS_FIRST: usize = GUARDS_PER_HEARTBEAT / 2;

/// Time for which guards are gathered after one was taken in, so that those that come and go at once cost
/// nothing: neither a wake-up nor a watch.
const GATHER: Duration = Duration::from_millis(10);

/// Runs for as long as the generation's session does, and does not end by itself. Cancel safe: it holds
/// nothing that outlives it.
pub(crate) async fn keep(generation: &Arc<SessionGeneration>) -> Infallible {
    let (refused, not_before) = (HashSet::new(), Timestamp::default());
    let (record_from, record_not_before) = (None, not_before);
    let heartbeat = Heartbeat {
        generation,
        cursor: 0,
        refused,
        unreadable: None,
        record_from,
        record_not_before,
        not_before,
    };
    heartbeat.run().await
}

struct Heartbeat<'a> {
    generation: &'a Arc<SessionGeneration>,
    /// Index of the guard at which the next heartbeat begins.
    cursor: usize,
    /// Paths of guards whose node may not be checked, for want of permission READ; each is reported once.
    refused: HashSet<String>,
    /// The guard refused last: from now on its node is watched by `exists`.
    unreadable: Option<Arc<HoldState>>,
    /// Time from which on a guard has been held for so long that others are to see since when; `None` when
    /// nothing is left to record.
    record_from: Option<Timestamp>,
    /// No heartbeat for the sake of that before this: many holds that begin together send at most one
    /// heartbeat more between two that are due anyway.
    record_not_before: Timestamp,
    /// No heartbeat before this: the last one was answered and proved nothing.
    not_before: Timestamp,
}

struct Beat {
    reply: Pending,
    guards: Vec<Arc<HoldState>>,
}

impl Heartbeat<'_> {
    async fn run(mut self) -> Infallible {
        let generation = Arc::clone(self.generation);
        // Boxed, because the set has room for one from the beginning, and most clients hold nothing.
        let mut own_nodes = FuturesUnordered::new();
        let mut heartbeat: Option<Beat> = None;
        // Time at which guards are taken in that were added since the bell rang; `None` when it rings for the
        // next one.
        let mut gather: Option<Timestamp> = None;
        loop {
            let changed = generation.lease.changed();
            if generation.ended().is_some() {
                // Nothing is left to keep: the generation tells its guards. They count as long as anything
                // has them.
                drop((own_nodes, heartbeat, self.unreadable));
                return pending().await;
            }
            let now = generation.clock.now();
            if gather.is_none_or(|until| now >= until) {
                let (added, gathers) = generation.held.take_added();
                gather = gathers.then(|| now + GATHER);
                self.record_from = self.record_from.into_iter().chain(self.unrecorded(&added)).min();
                own_nodes.extend(added.into_iter().map(|held| watch_own_node(held, true).boxed()));
            }
            own_nodes.extend(self.unreadable.take().map(|held| watch_own_node(held, false).boxed()));
            if generation.held.live() > 0 && now >= generation.lease.deadline() {
                // Marks guards lost whose lease ran out, also when nobody asks them.
                for held in generation.held.all() {
                    let _ = held.check_clock();
                }
            }
            if heartbeat.is_none() && generation.held.live() > 0 && now >= self.due() {
                // A guard that was to record its beginning may have ended meanwhile.
                self.recorded();
                heartbeat = (now >= self.due()).then(|| self.send()).flatten();
            }
            let wake = self.next_deadline(heartbeat.is_some()).into_iter().chain(gather).min();
            let replied = OptionFuture::from(heartbeat.as_mut().map(|heartbeat| &mut heartbeat.reply));
            tokio::select! {
                () = generation.held.bell.notified() => {}
                () = changed => {}
                Some(path) = own_nodes.next() => {
                    self.refused.remove(&path);
                }
                Some(outcome) = replied => {
                    if let Some(sent) = heartbeat.take() {
                        heartbeat = self.judge(sent.guards, outcome);
                    }
                }
                () = wait_until(&generation, wake) => {}
            }
        }
    }

    /// Time at which the next heartbeat is due: a sixth of the timeout after the last acknowledged write was
    /// sent, sooner when that proved less than it could have (decision 3).
    fn due(&self) -> Timestamp {
        let renewal = self.generation.lease.proof() + self.generation.lease.timing().pulse();
        let record = self.record_from.map(|record| record.max(self.record_not_before));
        record.map_or(renewal, |record| record.min(renewal)).max(self.not_before)
    }

    /// Time from which on the first of these is to record that it holds, if one has not. A hold that is over
    /// before that costs no request for it.
    fn unrecorded(&self, guards: &[Arc<HoldState>]) -> Option<Timestamp> {
        let unrecorded = guards.iter().filter(|held| held.beginning().unrecorded().is_some());
        Some(unrecorded.map(|held| held.since()).min()? + self.generation.lease.timing().pulse())
    }

    fn next_deadline(&self, beating: bool) -> Option<Timestamp> {
        if self.generation.held.live() == 0 {
            return None;
        }
        let lease = self.generation.lease.deadline();
        Some(if beating { lease } else { lease.min(self.due()) })
    }

    /// Checks up to 64 guards: up to half of them are the oldest whose beginning is due to be recorded, the
    /// others those first that were not checked the last time.
    fn send(&mut self) -> Option<Beat> {
        let all = self.generation.held.all();
        let mut guards: Vec<_> =
            all.iter().filter(|held| !self.refused.contains(held.path())).cloned().collect();
        if guards.is_empty() {
            // Permission READ is missing on all of them. A refused check renews the lease as well: only a
            // quorum can refuse it (decision 3).
            guards.extend(all.into_iter().take(1));
        }
        if guards.is_empty() {
            return None;
        }
        let (now, pulse) = (self.generation.clock.now(), self.generation.lease.timing().pulse());
        let is_due =
            |held: &HoldState| held.beginning().unrecorded().is_some() && held.since() + pulse <= now;
        let first = turns(&mut guards, self.cursor, |held| is_due(held));
        guards.truncate(self.fitting(&guards));
        self.cursor = self.cursor.wrapping_add(guards.len().saturating_sub(first));
        if guards.iter().any(|held| is_due(held)) {
            self.record_not_before = now + pulse / 2;
        }
        Some(self.check(guards))
    }

    /// Number of guards that one request has room for.
    fn fitting(&self, guards: &[Arc<HoldState>]) -> usize {
        /// Bytes of a check or a write in a multi, besides its path and data.
        const FIELDS: usize = 32;
        let mut room = self.generation.max_request;
        let fits = guards.iter().take_while(|held| {
            let size =
                held.node.unique_path().len() + held.beginning().unrecorded().map_or(0, Bytes::len) + FIELDS;
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        fits.count().clamp(1, GUARDS_PER_HEARTBEAT)
    }

    fn check(&self, guards: Vec<Arc<HoldState>>) -> Beat {
        let checks = guards.iter().map(|held| check_or_record(held)).collect();
        Beat { reply: self.generation.session.submit(Request::Multi(checks), Lane::Lease), guards }
    }

    /// Looks at what is left to record.
    fn recorded(&mut self) {
        if self.record_from.is_some() {
            self.record_from = self.unrecorded(&self.generation.held.all());
        }
    }

    /// Draws the consequences of a heartbeat's outcome. Returns the heartbeat that follows at once for the
    /// guards behind a failed check.
    fn judge(&mut self, mut guards: Vec<Arc<HoldState>>, outcome: Outcome) -> Option<Beat> {
        // A request that was lost is due again at once, and waits in the queue until the link is back.
        let Outcome::Reply(reply) = outcome else { return None };
        // An answer that did not renew the lease, as of a server that throttles, is followed by a pause, not
        // by the next heartbeat at once.
        self.not_before = self.generation.clock.now() + self.generation.lease.timing().pause();
        let Ok(Response::Multi(results)) = reply.result else { return None };
        let Some((index, code)) = MultiResult::first_failure(&results) else {
            guards.iter().for_each(|held| held.beginning().settle());
            self.recorded();
            return None;
        };
        let behind = guards.split_off((index + 1).min(guards.len()));
        let failed = guards.pop()?;
        match code {
            Code::NO_NODE if !planted!(OwnDeletionUnseen) => {
                failed.mark_lost(LostReason::NodeDeleted);
            }
            // Somebody wrote to it, as one who asks for the place, or it may not be written: it is there, and
            // its beginning stays unknown.
            _ if failed.beginning().unrecorded().is_some() => failed.beginning().settle(),
            Code::NO_AUTH if self.refused.insert(failed.path().to_owned()) => {
                tracing::error!(client = %self.generation.client, path = %failed.path(), "the guard's node may not be checked: permission READ is missing");
                self.unreadable = Some(failed);
            }
            _ => {}
        }
        self.recorded();
        // A multi ends at its first failure: the nodes before it were found, those behind it were not looked
        // at.
        (!behind.is_empty()).then(|| self.check(behind))
    }
}

/// Brings guards, the oldest first, into the order in which they are checked: some that `come_first`, then
/// the others from the one on whose turn it is. Returns the number of those that come first.
fn turns<T>(guards: &mut Vec<T>, cursor: usize, come_first: impl Fn(&T) -> bool) -> usize {
    let first: Vec<_> = guards.extract_if(.., |guard| come_first(guard)).take(RECORDS_FIRST).collect();
    let count = first.len();
    let start = cursor % guards.len().max(1);
    guards.rotate_left(start);
    guards.splice(..0, first);
    count
}

/// The check of a guard's node; for one that has not recorded its beginning a write of it, which is refused
/// once anybody wrote to the node. Late, too, it does no harm (decision 15).
fn check_or_record(held: &HoldState) -> MultiOp {
    let path = held.node.unique_path().to_owned();
    match held.beginning().unrecorded() {
        Some(data) => MultiOp::SetData { path, data: Some(data.clone()), version: 0 },
        None => MultiOp::Check { path, version: -1 },
    }
}

async fn wait_until(generation: &SessionGeneration, deadline: Option<Timestamp>) {
    match deadline {
        Some(deadline) => sleep_until(generation.clock.as_ref(), deadline).await,
        None => pending().await,
    }
}

/// Watches a guard's own node, so that its holder learns of a deletion as fast as the next in line does.
/// Returns the path.
///
/// The watch of a released guard stays until our own delete fires it: that is one request less than removing
/// it.
async fn watch_own_node(held: Arc<HoldState>, readable: bool) -> String {
    until_deleted(&held, readable).await;
    if planted!(OwnDeletionUnseen) {
        return pending().await;
    }
    held.mark_deleted();
    held.path().to_owned()
}

/// Resolves when the servers say that the node is gone. Never resolves where they cannot say it: then
/// heartbeat, lease and the end of the session tell.
///
/// Without permission READ the node is watched by `exists`, and looked for as often as heartbeats are due:
/// some servers do not tell a client of changes of a node that it may not read.
async fn until_deleted(held: &HoldState, mut readable: bool) {
    let session = &held.generation.session;
    let mut own = held.take_own_watch().filter(|_| readable);
    loop {
        // One that the ticket has set tells of all that was written to the node since it was made.
        if let Some(watch) = own.take() {
            match watch.await {
                Fired::Event(EventKind::Deleted) => return,
                Fired::Event(_) => {}
                Fired::Ended(_) => return pending().await,
            }
        }
        if held.is_over() {
            return;
        }
        let path = held.path().to_owned();
        let request = if readable {
            Request::GetData { path, watch: true }
        } else {
            Request::Exists { path, watch: true }
        };
        let watch = match session.submit(request, Lane::Cleanup).await {
            Outcome::Reply(reply) => match reply.result {
                Err(Code::NO_NODE) => return,
                Err(Code::NO_AUTH) if readable => {
                    readable = false;
                    continue;
                }
                // Another claim stands at the path of this one's node, which was deleted while a link was
                // lost (decision 8).
                Ok(Response::Data { stat, .. } | Response::Stat(stat)) if !held.node.is_same(stat.czxid) => {
                    return;
                }
                Ok(response) => {
                    if matches!(response, Response::Data { data: Some(data), .. } if data == REVOKE) {
                        held.revoked().cancel();
                    }
                    reply.watch
                }
                Err(_) => None,
            },
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => continue,
            Outcome::NotSent(_) | Outcome::Unknown(_) => return pending().await,
        };
        let Some(watch) = watch else {
            tokio::time::sleep(held.generation.lease.timing().pause()).await;
            continue;
        };
        tokio::select! {
            fired = watch => match fired {
                Fired::Event(EventKind::Deleted) => return,
                Fired::Event(_) => {}
                Fired::Ended(_) => return pending().await,
            },
            () = until_absent(held), if !readable => return,
        }
    }
}

/// Resolves when a look from time to time finds the node gone, or the guard is over.
async fn until_absent(held: &HoldState) {
    loop {
        tokio::time::sleep(held.generation.lease.timing().pulse()).await;
        let look = Request::Exists { path: held.path().to_owned(), watch: false };
        if held.is_over() || is_absent(held.generation.session.submit(look, Lane::Cleanup).await) {
            return;
        }
    }
}

fn is_absent(looked: Outcome) -> bool {
    matches!(looked, Outcome::Reply(reply) if reply.result == Err(Code::NO_NODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guards of one heartbeat, and the cursor after it.
    fn beat(all: usize, cursor: usize, is_new: impl Fn(usize) -> bool) -> (Vec<usize>, usize) {
        let mut guards: Vec<_> = (0..all).collect();
        let first = turns(&mut guards, cursor, |guard| is_new(*guard));
        assert_eq!(guards.iter().collect::<HashSet<_>>().len(), all);
        guards.truncate(GUARDS_PER_HEARTBEAT);
        let cursor = cursor + guards.len() - first;
        (guards, cursor)
    }

    #[test]
    fn the_beginning_of_a_new_hold_does_not_wait_for_thousands_of_others() {
        let (guards, cursor) = beat(5_000, 100, |guard| guard >= 4_998);
        assert_eq!(guards[..4], [4_998, 4_999, 100, 101]);
        assert_eq!((guards.len(), cursor), (64, 162));
    }

    #[test]
    fn holds_that_begin_together_do_not_keep_the_others_from_being_checked() {
        let (mut cursor, mut checked) = (0, HashSet::new());
        for _ in 0..5_000_usize.div_ceil(32) {
            let (guards, next) = beat(5_000, cursor, |guard| guard >= 1_000);
            checked.extend(guards);
            cursor = next;
        }
        assert!((0..1_000).all(|guard| checked.contains(&guard)));
        assert_eq!(beat(0, 7, |_| true), (Vec::new(), 7));
    }
}
