//! Keeps the lease of an epoch while guards live, and tells guards when they are lost.

use crate::clock::{Timestamp, sleep_until};
use crate::epoch::Epoch;
use crate::held::Held;
use crate::lost::LostReason;
use crate::session::{Cause, Fired, Lane, Outcome, Pending};
use docent_proto::{Code, EventKind, MultiOp, MultiResult, Request, Response};
use futures_util::future::OptionFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;

/// Guards checked by one heartbeat.
const GUARDS_PER_HEARTBEAT: usize = 64;

/// Runs for as long as the epoch's session does. Cancel safe: it holds nothing that outlives it.
pub(crate) async fn keep(epoch: &Arc<Epoch>) {
    Keeper { epoch, watched: HashSet::new(), cursor: 0, refused: HashSet::new() }.run().await;
}

struct Keeper<'a> {
    epoch: &'a Arc<Epoch>,
    /// Paths of guards whose own node is being watched.
    watched: HashSet<String>,
    /// Where the next heartbeat begins among the guards.
    cursor: usize,
    /// Guards whose node may not be checked; reported once.
    refused: HashSet<String>,
}

struct Heartbeat {
    reply: Pending,
    guards: Vec<Arc<Held>>,
}

impl Keeper<'_> {
    async fn run(mut self) {
        let epoch = Arc::clone(self.epoch);
        let mut own_nodes = FuturesUnordered::new();
        let mut heartbeat: Option<Heartbeat> = None;
        loop {
            let changed = epoch.lease.changed();
            let guards = epoch.held.all();
            for held in &guards {
                // A guard whose lease ran out finds out here, also when nobody asks it.
                if held.check().is_ok() && self.watched.insert(held.path.clone()) {
                    own_nodes.push(watch_own_node(Arc::clone(held)));
                }
            }
            let live: Vec<_> = guards.into_iter().filter(|held| !held.over().is_cancelled()).collect();
            if heartbeat.is_none() && self.due().is_some_and(|due| epoch.clock.now() >= due) {
                heartbeat = self.send(&live);
            }
            let wake = self.next_deadline(&live, heartbeat.is_some());
            let replied = OptionFuture::from(heartbeat.as_mut().map(|heartbeat| &mut heartbeat.reply));
            tokio::select! {
                () = epoch.held.bell.notified() => {}
                () = changed => {}
                Some(path) = own_nodes.next() => {
                    self.watched.remove(&path);
                    self.refused.remove(&path);
                }
                Some(outcome) = replied => {
                    if let Outcome::NotSent(Cause::Ended(_)) | Outcome::Unknown(Cause::Ended(_)) = outcome {
                        // Nothing is left to keep; the epoch tells its guards.
                        return pending().await;
                    }
                    if let Some(sent) = heartbeat.take() {
                        heartbeat = self.judge(sent.guards, outcome);
                    }
                }
                () = wait_until(&epoch, wake) => {}
            }
        }
    }

    /// When the next heartbeat is due: a sixth of the timeout after the last acknowledged write was sent.
    fn due(&self) -> Option<Timestamp> {
        let timeout = self.epoch.lease.timeout();
        (!timeout.is_zero()).then(|| self.epoch.lease.proof() + timeout / 6)
    }

    fn next_deadline(&self, live: &[Arc<Held>], beating: bool) -> Option<Timestamp> {
        if live.is_empty() {
            return None;
        }
        let lease = self.epoch.lease.deadline();
        let can_check = live.iter().any(|held| !self.refused.contains(&held.path));
        let due = self.due().filter(|_| !beating && can_check);
        Some(due.map_or(lease, |due| due.min(lease)))
    }

    /// Checks up to 64 guards, those first that were not checked the last time.
    fn send(&mut self, live: &[Arc<Held>]) -> Option<Heartbeat> {
        let mut guards: Vec<_> =
            live.iter().filter(|held| !self.refused.contains(&held.path)).cloned().collect();
        if guards.is_empty() {
            return None;
        }
        let start = self.cursor % guards.len();
        guards.rotate_left(start);
        guards.truncate(GUARDS_PER_HEARTBEAT);
        self.cursor = self.cursor.wrapping_add(guards.len());
        Some(self.check(guards))
    }

    fn check(&self, guards: Vec<Arc<Held>>) -> Heartbeat {
        let checks =
            guards.iter().map(|held| MultiOp::Check { path: held.path.clone(), version: -1 }).collect();
        Heartbeat { reply: self.epoch.session.submit(Request::Multi(checks), Lane::Cleanup), guards }
    }

    /// Draws the consequences of a heartbeat's outcome; returns the one to send at once for the guards behind a failure.
    fn judge(&mut self, mut guards: Vec<Arc<Held>>, outcome: Outcome) -> Option<Heartbeat> {
        let results = match outcome {
            Outcome::Reply(reply) => match reply.result {
                Ok(Response::Multi(results)) => results,
                _ => return None,
            },
            // It is due again at once, and waits in the queue until the link is back.
            Outcome::NotSent(_) | Outcome::Unknown(_) => return None,
        };
        let (index, code) = results.iter().enumerate().find_map(|(index, result)| match result {
            MultiResult::Failed(code) if *code != Code::OK => Some((index, *code)),
            _ => None,
        })?;
        let behind = guards.split_off((index + 1).min(guards.len()));
        let failed = guards.pop()?;
        match code {
            Code::NO_NODE => {
                failed.lose(LostReason::NodeDeleted);
            }
            code => {
                tracing::error!(path = %failed.path, %code, "the guard's node may not be checked");
                self.refused.insert(failed.path.clone());
            }
        }
        // The guards before it were checked and are there; those behind it were not looked at.
        (!behind.is_empty()).then(|| self.check(behind))
    }
}

async fn wait_until(epoch: &Epoch, deadline: Option<Timestamp>) {
    match deadline {
        Some(deadline) => sleep_until(epoch.clock.as_ref(), deadline).await,
        None => pending().await,
    }
}

/// Watches a guard's own node, so that its holder learns of a deletion as fast as the next in line does. Returns the path.
///
/// The watch of a released guard stays until our own delete fires it: that is one request less than removing it.
async fn watch_own_node(held: Arc<Held>) -> String {
    until_deleted(&held).await;
    if !held.over().is_cancelled() {
        held.lose(LostReason::NodeDeleted);
    }
    held.path.clone()
}

/// Resolves when the node is seen to be gone. Never resolves when that cannot be seen: then heartbeat, lease and session
/// end tell.
async fn until_deleted(held: &Held) {
    let session = &held.epoch.session;
    let mut readable = true;
    loop {
        let path = held.path.clone();
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
                Ok(_) => reply.watch,
                Err(_) => None,
            },
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => continue,
            Outcome::NotSent(_) | Outcome::Unknown(_) => None,
        };
        let Some(watch) = watch else { return pending().await };
        match watch.await {
            Fired::Event(EventKind::Deleted) => return,
            Fired::Event(_) => {}
            Fired::Ended(_) => return pending().await,
        }
    }
}
