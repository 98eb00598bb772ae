//! Keeps the lease of a generation while guards live, and marks guards lost.

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

/// Number of guards checked by one heartbeat.
const GUARDS_PER_HEARTBEAT: usize = 64;

/// Number of guards whose beginning one heartbeat records before it checks guards in rotation. A new guard
/// does not wait until thousands were checked, and new guards do not keep the others from being checked.
const RECORDS_FIRST: usize = GUARDS_PER_HEARTBEAT / 2;

/// Time for which new guards are gathered after the first one. Guards that end within this time cost neither
/// a wake-up nor a watch.
const GATHER: Duration = Duration::from_millis(10);

/// Keeps the lease for as long as the generation's session runs, and never returns. Cancel safe: no state
/// outlives the call.
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
    /// Paths of guards whose node cannot be checked because permission READ is missing; each is reported
    /// once.
    refused: HashSet<String>,
    /// The guard refused last. From now on its node is watched by `exists`.
    unreadable: Option<Arc<HoldState>>,
    /// Time from which the first unrecorded guard has been held long enough for its beginning to be recorded.
    /// `None` if nothing is left to record.
    record_from: Option<Timestamp>,
    /// Earliest time of a heartbeat sent only to record. Many holds that begin together cause at most one
    /// extra heartbeat between two that are due anyway.
    record_not_before: Timestamp,
    /// Earliest time of the next heartbeat, because the last one was answered but proved nothing.
    not_before: Timestamp,
}

struct Beat {
    reply: Pending,
    guards: Vec<Arc<HoldState>>,
}

impl Heartbeat<'_> {
    async fn run(mut self) -> Infallible {
        let generation = Arc::clone(self.generation);
        // Boxed, because the set has room for one entry from the start, and most clients hold nothing.
        let mut own_nodes = FuturesUnordered::new();
        let mut heartbeat: Option<Beat> = None;
        // Time at which the guards added since the bell rang are taken in. `None` until the bell rings for
        // the next one.
        let mut gather: Option<Timestamp> = None;
        loop {
            let changed = generation.lease.changed();
            if generation.ended().is_some() {
                // Nothing is left to keep, and the generation notifies its guards. Guards count as alive for
                // as long as any reference exists, so drop the references.
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
                // Marks guards lost whose lease has run out, even if no caller checks them.
                for held in generation.held.all() {
                    let _ = held.check_clock();
                }
            }
            if heartbeat.is_none() && generation.held.live() > 0 && now >= self.due() {
                // A guard whose beginning was to be recorded may have ended in the meantime.
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

    /// Returns the time at which the next heartbeat is due: a sixth of the timeout after the last
    /// acknowledged write was sent, or sooner if that write proved less than it could have (decision 3).
    fn due(&self) -> Timestamp {
        let renewal = self.generation.lease.proof() + self.generation.lease.timing().pulse();
        let record = self.record_from.map(|record| record.max(self.record_not_before));
        record.map_or(renewal, |record| record.min(renewal)).max(self.not_before)
    }

    /// Returns the time from which the first of the guards whose beginning is unrecorded is to record it. A
    /// hold that ends before that time costs no extra request.
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

    /// Checks up to 64 guards. Up to half of them are the oldest guards whose beginning is due to be
    /// recorded. The rest are checked in rotation, starting with those that the previous heartbeat did not
    /// reach.
    fn send(&mut self) -> Option<Beat> {
        let all = self.generation.held.all();
        let mut guards: Vec<_> =
            all.iter().filter(|held| !self.refused.contains(held.path())).cloned().collect();
        if guards.is_empty() {
            // Permission READ is missing on all of them. A refused check renews the lease as well, because
            // only a quorum can refuse it (decision 3).
            guards.extend(all.into_iter().take(1));
        }
        if guards.is_empty() {
            return None;
        }
        let (now, pulse) = (self.generation.clock.now(), self.generation.lease.timing().pulse());
        let is_due =
            |held: &HoldState| held.beginning().unrecorded().is_some() && held.since() + pulse <= now;
        let first = reorder(&mut guards, self.cursor, |held| is_due(held));
        guards.truncate(self.fitting(&guards));
        self.cursor = self.cursor.wrapping_add(guards.len().saturating_sub(first));
        if guards.iter().any(|held| is_due(held)) {
            self.record_not_before = now + pulse / 2;
        }
        Some(self.check(guards))
    }

    /// Returns the number of guards that fit into one request.
    fn fitting(&self, guards: &[Arc<HoldState>]) -> usize {
        /// Bytes of a check or a write in a multi, apart from its path and data.
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

    /// Recomputes when the next beginning must be recorded.
    fn recorded(&mut self) {
        if self.record_from.is_some() {
            self.record_from = self.unrecorded(&self.generation.held.all());
        }
    }

    /// Evaluates the outcome of a heartbeat. Returns the heartbeat that follows immediately for the guards
    /// behind a failed check.
    fn judge(&mut self, mut guards: Vec<Arc<HoldState>>, outcome: Outcome) -> Option<Beat> {
        // A lost request is due again immediately, and waits in the queue until the link is back.
        let Outcome::Reply(reply) = outcome else { return None };
        // A reply that did not renew the lease, such as one from a throttling server, is followed by a pause
        // and not by another heartbeat right away.
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
            // Either another client wrote to the node, for example to ask for its place, or this client may
            // not write to it. The node exists, and its beginning stays unknown.
            _ if failed.beginning().unrecorded().is_some() => failed.beginning().settle(),
            Code::NO_AUTH if self.refused.insert(failed.path().to_owned()) => {
                // Event: The client may not read the node of one of its guards. The guard stays valid; the
                // client checks the node with exists requests instead of reads. Logged once for each node.
                // Action: Grant permission READ on the guards' nodes to the client.
                tracing::error!(target: "docent::lock", client = %self.generation.client, path = %failed.path(), "permission READ on the guard's node is missing; checking only that the node exists");
                self.unreadable = Some(failed);
            }
            _ => {}
        }
        self.recorded();
        // A multi ends at its first failure: the nodes before it exist, the nodes after it were not checked.
        (!behind.is_empty()).then(|| self.check(behind))
    }
}

/// Sorts guards, given oldest first, into the order in which they are checked: first some for which
/// `have_priority` holds, then the others in rotation from `cursor`. Returns the number of those that go
/// first.
fn reorder<T>(guards: &mut Vec<T>, cursor: usize, have_priority: impl Fn(&T) -> bool) -> usize {
    let first: Vec<_> = guards.extract_if(.., |guard| have_priority(guard)).take(RECORDS_FIRST).collect();
    let count = first.len();
    let start = cursor % guards.len().max(1);
    guards.rotate_left(start);
    guards.splice(..0, first);
    count
}

/// Returns the check of a guard's node. If the guard's beginning is not recorded yet, returns a write that
/// records it; the servers refuse that write once the node was modified. A late write is harmless (decision
/// 15).
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

/// Watches a guard's own node, so that its holder learns of a deletion as quickly as the next client in line
/// does. Returns the path.
///
/// The watch of a released guard stays in place until the client's own delete fires it, which saves the
/// request that removes the watch.
async fn watch_own_node(held: Arc<HoldState>, readable: bool) -> String {
    until_deleted(&held, readable).await;
    if planted!(OwnDeletionUnseen) {
        return pending().await;
    }
    held.mark_deleted();
    held.path().to_owned()
}

/// Resolves when the servers report that the node was deleted. Never resolves if they cannot report it; then
/// the heartbeat, the lease and the end of the session decide.
///
/// Without permission READ, the node is watched by `exists` and polled as often as heartbeats are due,
/// because some servers do not notify a client of changes to a node that it may not read.
async fn until_deleted(held: &HoldState, mut readable: bool) {
    let session = &held.generation.session;
    let mut own = held.take_own_watch().filter(|_| readable);
    loop {
        // The watch that the ticket has set covers every change of the node since its creation.
        if let Some(watch) = own.take() {
            match watch.await {
                Fired::Event(EventKind::Deleted) => return,
                Fired::Event(_) => {}
                Fired::Ended(_) => return pending().await,
            }
        }
        if held.has_ended() {
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
                // Another claim exists at the same path: this claim's node was deleted while the link was
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

/// Resolves when periodic polling finds the node absent, or when the guard has ended.
async fn until_absent(held: &HoldState) {
    loop {
        tokio::time::sleep(held.generation.lease.timing().pulse()).await;
        let exists = Request::Exists { path: held.path().to_owned(), watch: false };
        if held.has_ended() || is_absent(held.generation.session.submit(exists, Lane::Cleanup).await) {
            return;
        }
    }
}

fn is_absent(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Reply(reply) if reply.result == Err(Code::NO_NODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the guards of one heartbeat, and the cursor after it.
    fn beat(all: usize, cursor: usize, is_new: impl Fn(usize) -> bool) -> (Vec<usize>, usize) {
        let mut guards: Vec<_> = (0..all).collect();
        let first = reorder(&mut guards, cursor, |guard| is_new(*guard));
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
