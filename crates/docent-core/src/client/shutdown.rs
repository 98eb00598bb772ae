//! The orderly end of a client: stage by stage, within one deadline (decision 16).

use super::outage_log::servers_unreachable;
use super::{Client, Stage};
use crate::guard::LostReason;
use crate::node::{is_own_path, is_proof};
use crate::operation::Shared;
use crate::session::SessionEnd;
use crate::time::{deadline, seconds};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time that tasks get to finish before the deadline.
const WIND_UP: Duration = Duration::from_millis(200);

impl Client {
    /// Ends everything that was started with this client, in order, and closes the client, within the time
    /// limit `within`. The report names the nodes that were left until the session ends.
    ///
    /// 1. *Drain:* kept nodes with final data write that data. For example, the registrations of a registry
    ///    with a drain period are disabled, so that callers stop picking them. The shutdown then waits for
    ///    the drain period. If the servers acknowledged no final data, no caller can have seen any, and there
    ///    is no wait. This stage takes at most half of the time. From its start on, consumers take no more
    ///    items.
    /// 2. *Deregister:* ephemeral kept nodes (registrations, memberships) are removed.
    /// 3. *Elections:* `Election::run` ends as with `ElectionRun::until`: the work has its grace to stop,
    ///    then `run` resigns and returns `Ok`.
    /// 4. *Deliveries:* items in work are finished or returned.
    /// 5. *Locks:* guards of locks, permits and shares are released.
    /// 6. *Close:* as in [`close`](Self::close): pending deletes are sent, lost guards have the lease margin
    ///    to be dropped, and the session is closed, together with earlier sessions whose end is not certain.
    ///
    /// Each stage gets an equal part of the remaining time, and passes on what it does not need. A stage
    /// without anything to end takes no time. Holders of guards are asked first: `revoked()` resolves, and
    /// they have the time of the stage to release their guards, while all operations continue. Guards that
    /// are still held after that are lost with [`Closed`](LostReason::Closed), before the servers give their
    /// places to other clients, and the report names them. A guard that is never released therefore uses up
    /// its part of the time; drop it before the call.
    ///
    /// Once the first stage has begun, nothing can be registered, and no item taken from a queue. Once the
    /// stage of a guard's kind has begun, no guard of that kind can be acquired. Such calls end with
    /// `Closed`, as everything else does once this method has returned.
    ///
    /// In an outage, the shutdown waits only for holders that have to stop their work. Nodes and requests
    /// that need a server are not waited for once the client has had no connection for two seconds; the
    /// report names the nodes that remain.
    ///
    /// Further calls, also on other clones, wait for the same end; the earliest deadline applies. Persistent
    /// nodes remain, whichever handle keeps them.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The shutdown continues in the background, within its time. Once the last
    /// clone of the client is dropped, the remaining stages are skipped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: docent_core::Client) {
    /// let report = client.shutdown(std::time::Duration::from_secs(10)).await;
    /// for node in &report.left {
    ///     eprintln!("left behind: {node}");
    /// }
    /// # }
    /// ```
    pub fn shutdown(&self, within: Duration) -> impl Future<Output = ShutdownReport> + Send + use<> {
        // Keeps the client open while the future is awaited.
        let client = self.clone();
        async move {
            let (shared, began, deadline) = (client.shared(), Instant::now(), deadline(within));
            // Leaves time for the tasks to end before the deadline.
            let end = deadline - (within / 20).min(WIND_UP);
            if shared.stages.end_by(end) && !shared.closing.is_cancelled() {
                // Event: A client begins to shut down in order: it deregisters, asks the holders of its
                // guards to leave, and closes its session. After `deadline_seconds` it ends whatever remains.
                tracing::info!(
                    target: "docent::client",
                    client = %shared.label,
                    deadline_seconds = seconds(within),
                    "client is shutting down"
                );
                note_kinds(shared);
                shared.tasks.spawn_on(end_in_order(Arc::clone(shared)), &shared.runtime);
            }
            if tokio::time::timeout_at(deadline, shared.tasks.wait()).await.is_err() {
                cut_off(shared);
            }
            let report = ShutdownReport::of(shared, began.elapsed());
            // Event: A client was shut down in order. The field `report` names the guards that were still
            // held, and the nodes that remain until the session ends; `held_on` and `left` count them.
            tracing::info!(
                target: "docent::client",
                client = %shared.label,
                took_seconds = seconds(report.took),
                held_on = report.held_on.len(),
                left = report.left.len(),
                %report,
                "client shut down"
            );
            report
        }
    }
}

/// Ends everything that is still running, because the time is up.
fn cut_off(shared: &Shared) {
    // Set first, so that the tasks ended by the cancellation know why.
    shared.stages.enter(Stage::Close);
    shared.closing.cancel();
    let generation = shared.generation();
    generation.session.drain();
    generation.end(SessionEnd::Closed);
}

/// Runs all stages, and closes the client at the end.
async fn end_in_order(shared: Arc<Shared>) {
    drain(&shared).await;
    deregister(&shared).await;
    for stage in Stage::OF_GUARDS {
        give_up(&shared, stage).await;
    }
    shared.stages.enter(Stage::Close);
    shared.closing.cancel();
}

/// Records the kinds of the nodes, because nothing else knows them once they are given up. If there is no
/// time at all, they are given up before the first stage.
fn note_kinds(shared: &Shared) {
    let guards = shared.generation().held.all();
    shared.notes.add_kinds(guards.iter().map(|held| (held.path().to_owned(), held.recipe().kind.label())));
    shared.notes.add_kinds(shared.kept.ephemeral());
}

/// Returns the number of parts into which the remaining time is divided: one for each stage after `stage`
/// that has something to end, one for the close, and one for `stage` itself.
fn parts(shared: &Shared, stage: Stage) -> u32 {
    let held = &shared.generation().held;
    let busy = Stage::OF_GUARDS.iter().filter(|later| **later > stage && !held.of(**later).is_empty());
    2 + u32::try_from(busy.count()).unwrap_or_default()
}

/// Lets kept nodes write their final data, and gives readers the time to react.
async fn drain(shared: &Shared) {
    shared.stages.enter(Stage::Drain);
    if !shared.kept.has_final_data() {
        return;
    }
    let published = async {
        let period = tokio::select! {
            biased;
            period = shared.kept.final_data_published() => period,
            () = servers_unreachable(shared) => return,
        };
        tokio::time::sleep(period).await;
    };
    shared.stages.within_part(2, &shared.closing, published).await;
}

/// Removes kept nodes that belong to their session.
async fn deregister(shared: &Shared) {
    shared.stages.enter(Stage::Deregister);
    let parts = parts(shared, Stage::Deregister);
    let removed = async {
        tokio::select! {
            biased;
            () = shared.kept.ephemeral_removed() => {}
            () = servers_unreachable(shared) => {}
        }
    };
    shared.stages.within_part(parts, &shared.closing, removed).await;
}

/// Asks the holders of a stage to release their guards, and marks those lost that are still held when the
/// stage's time is up.
async fn give_up(shared: &Shared, stage: Stage) {
    shared.stages.enter(stage);
    let generation = shared.generation();
    if generation.held.is_idle(stage) {
        return;
    }
    let guards = generation.held.of(stage);
    // Some guards were acquired after the shutdown began.
    shared.notes.add_kinds(guards.iter().map(|held| (held.path().to_owned(), held.recipe().kind.label())));
    if !planted!(ShutdownNotAnnounced) {
        guards.iter().for_each(|held| held.revoked().cancel());
    }
    drop(guards);
    let idle = async {
        tokio::select! {
            biased;
            () = generation.held.wait_idle(stage) => {}
            // The holders still get their time to stop, but no write is waited for.
            () = servers_unreachable(shared) => generation.held.wait_ended(stage).await,
        }
    };
    shared.stages.within_part(parts(shared, stage), &shared.closing, idle).await;
    for held in generation.held.of(stage) {
        held.mark_lost(LostReason::Closed);
        // A guard that was released at the last moment was not held too long.
        if held.lost_reason() == Some(LostReason::Closed) {
            shared.notes.add_still_held(held.recipe().kind.label(), held.path().to_owned());
        }
    }
}

/// Report of a [shutdown](crate::Client::shutdown): what was left behind, and what was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Nodes that may exist until the servers expire their session: one
    /// [session timeout](Self::session_timeout) after the last request that the servers received in it. If
    /// the servers are down or elect a new leader, the time counts from their return. Empty if every session
    /// of the client is certain to have ended.
    ///
    /// Lists nodes whose creation the servers acknowledged. Nodes that block no other client are omitted: the
    /// client's own nodes in folders named `_docent`, and the second node of a claim, below the claimed item.
    pub left: Vec<ShutdownNode>,
    /// Guards that were still held when their time was up. They are lost with
    /// [`Closed`](crate::LostReason::Closed).
    pub held_on: Vec<ShutdownNode>,
    /// Timeout of the session that may live on; `None` if none does.
    pub session_timeout: Option<Duration>,
    /// Duration of the shutdown.
    pub took: Duration,
}

/// A node in a [`ShutdownReport`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ShutdownNode {
    /// Kind of the node's owner: the recipe's label as in metrics (`mutex`, `election`, `queue` …),
    /// `registration`, `member` or `kept_node`. If the owner is not known, `ticket` for a place in a line and
    /// `node` for any other node.
    pub kind: &'static str,
    /// Path of the node.
    pub path: String,
    /// Id of the session that owns the node.
    pub session_id: i64,
}

impl ShutdownReport {
    pub(super) fn of(shared: &Shared, took: Duration) -> Self {
        let generation = shared.generation();
        let (session, notes) = (&generation.session, &shared.notes);
        let (owned, id) = (session.owned(), session.id());
        // Nodes of older sessions that this session has replaced no longer exist.
        let mut left: Vec<_> = notes
            .lingering()
            .into_iter()
            .filter(|(older, _)| *older != id)
            .flat_map(|(older, paths)| paths.into_iter().map(move |path| (older, path)))
            .filter(|(_, path)| !owned.contains(path))
            .collect();
        if !session.has_certainly_ended() && !notes.has_ended(id) {
            left.extend(owned.into_iter().map(|path| (id, path)));
        }
        left.sort_unstable();
        let node = |kind, full: &str, session_id| {
            let path = shared.namespace.relative(full);
            ShutdownNode { kind, path, session_id }
        };
        let left: Vec<_> = left
            .iter()
            .map(|(id, full)| node(notes.kind(full), full, *id))
            .filter(|node| !is_mark(&node.path))
            .collect();
        let held_on = notes.still_held().iter().map(|(kind, full)| node(*kind, full, session.id())).collect();
        // A session that never reached a server has no timeout yet. The nodes left are then those of an older
        // session.
        let granted = Some(generation.lease.timeout()).filter(|timeout| !timeout.is_zero());
        let session_timeout = (!left.is_empty()).then(|| granted.unwrap_or(shared.config.session_timeout));
        Self { left, held_on, session_timeout, took }
    }

    /// Returns true if nothing was left behind and nothing was cut short.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty() && self.held_on.is_empty()
    }
}

/// Returns true for the path of a node that blocks no other client.
pub(super) fn is_mark(path: &str) -> bool {
    is_own_path(path) || path.rsplit('/').next().is_some_and(is_proof)
}

impl fmt::Display for ShutdownNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} of session {:#x}", self.kind, self.path, self.session_id)
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "closed after {:?}", self.took)?;
        list(f, "still held", &self.held_on)?;
        list(f, "left until the session ends", &self.left)
    }
}

fn list(f: &mut fmt::Formatter<'_>, heading: &str, nodes: &[ShutdownNode]) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        let before = if index == 0 { format!("; {heading}: ") } else { ", ".to_owned() };
        write!(f, "{before}{node}")?;
    }
    Ok(())
}
