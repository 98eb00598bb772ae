//! The orderly end of a client: stage by stage, within one deadline (decision 16).

use super::{Client, ShutdownReport, Stage};
use crate::guard::LostReason;
use crate::operation::Shared;
use crate::session::SessionEnd;
use crate::time::deadline;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most time that tasks get to wind up before the deadline.
const WIND_UP: Duration = Duration::from_millis(200);

impl Client {
    /// Ends everything that was started with this client, in order, and closes it, all `within` this time.
    /// The report names what had to be left to the end of the session.
    ///
    /// 1. *Drain:* kept nodes that have last words write them, such as registrations of a registry with a
    ///    drain period: nobody picks them any more. Their period is waited for, at most for half of the time;
    ///    not where no such write was acknowledged, for then nobody can have heard of it.
    /// 2. *Deregister:* ephemeral kept nodes are removed: registrations, memberships.
    /// 3. *Elections:* `Election::run` stops its work as its `until` does, after the work's grace, resigns
    ///    and returns `Ok`.
    /// 4. *Deliveries:* consumers take nothing more; items that are in work are finished, or given back.
    /// 5. *Locks:* guards of locks, permits and shares are released.
    /// 6. *Close:* as [`close`](Self::close): pending deletes are carried out, lost guards have a margin of
    ///    the lease to be dropped, and the session is ended, also earlier ones whose end is not certain.
    ///
    /// Each stage gets an equal part of the time that is left, and what it does not need goes to the next; a
    /// stage without anything to end takes no time. Guards are not taken away at once: `revoked()` resolves,
    /// and their holders have the time of the stage to give them up, while all operations go on. Those that
    /// are held on then are lost by [`Closed`](LostReason::Closed), before the servers give their places to
    /// others, and the report names them. So a guard that nobody gives up takes its part of the time: drop it
    /// before.
    ///
    /// From the first stage on nothing is registered any more, and from its own stage on nothing is acquired:
    /// that ends with `Closed`, and so does everything else once this has returned. While no server can be
    /// reached it waits for one until the time is over.
    ///
    /// Calling it again, also on another clone, waits for the same end; the earliest deadline counts.
    /// Persistent nodes stay, whoever keeps them.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the shutdown goes on in the background, within its time. Once the last
    /// clone and everything built on it are dropped, the rest of the stages is skipped.
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
        // The client stays open while this is awaited.
        let client = self.clone();
        async move {
            let (shared, began, deadline) = (client.shared(), Instant::now(), deadline(within));
            // So that tasks have ended when the time is over.
            let end = deadline - (within / 20).min(WIND_UP);
            if shared.stages.end_by(end) && !shared.closing.is_cancelled() {
                note_kinds(shared);
                shared.tasks.spawn_on(end_in_order(Arc::clone(shared)), &shared.runtime);
            }
            if tokio::time::timeout_at(deadline, shared.tasks.wait()).await.is_err() {
                cut_off(shared);
            }
            let report = ShutdownReport::of(shared, began.elapsed());
            tracing::info!(%report, "the client was shut down");
            report
        }
    }
}

/// Ends all that goes on: the time is over.
fn cut_off(shared: &Shared) {
    // Whoever is ended by that knows why.
    shared.stages.enter(Stage::Close);
    shared.closing.cancel();
    let generation = shared.generation();
    generation.session.drain();
    generation.end(SessionEnd::Closed);
}

/// Goes through the stages, and closes the client at the end.
async fn end_in_order(shared: Arc<Shared>) {
    drain(&shared).await;
    deregister(&shared).await;
    for stage in Stage::OF_GUARDS {
        give_up(&shared, stage).await;
    }
    shared.stages.enter(Stage::Close);
    shared.closing.cancel();
}

/// Notes what the nodes are of: once they are given up nobody knows. With no time at all they are given up
/// before the first stage.
fn note_kinds(shared: &Shared) {
    let guards = shared.generation().held.all();
    shared.notes.add_kinds(guards.iter().map(|held| (held.path().to_owned(), held.recipe().label())));
    shared.notes.add_kinds(shared.kept.ephemeral());
}

/// Number of parts that the time which is left is divided into: one for each of the stages after `stage` that
/// have something to end, one for the close, and one for `stage` itself.
fn parts(shared: &Shared, stage: Stage) -> u32 {
    let held = &shared.generation().held;
    let busy = Stage::OF_GUARDS.iter().filter(|later| **later > stage && !held.of(**later).is_empty());
    2 + u32::try_from(busy.count()).unwrap_or_default()
}

/// Lets kept nodes say their last words, and gives those who read them the time to act.
async fn drain(shared: &Shared) {
    shared.stages.enter(Stage::Drain);
    if !shared.kept.has_farewells() {
        return;
    }
    let heard = async {
        let period = shared.kept.farewells_said().await;
        tokio::time::sleep(period).await;
    };
    shared.stages.within_part(2, &shared.closing, heard).await;
}

/// Removes kept nodes that go with their session.
async fn deregister(shared: &Shared) {
    shared.stages.enter(Stage::Deregister);
    let parts = parts(shared, Stage::Deregister);
    shared.stages.within_part(parts, &shared.closing, shared.kept.ephemeral_left()).await;
}

/// Asks for the guards of a stage, and takes those that are held on when its time is over.
async fn give_up(shared: &Shared, stage: Stage) {
    shared.stages.enter(stage);
    let generation = shared.generation();
    if generation.held.is_over(stage) {
        return;
    }
    let asked = generation.held.of(stage);
    // Some were taken since the shutdown began.
    shared.notes.add_kinds(asked.iter().map(|held| (held.path().to_owned(), held.recipe().label())));
    if !planted!(ShutdownNotAnnounced) {
        asked.iter().for_each(|held| held.revoked().cancel());
    }
    drop(asked);
    let over = generation.held.over(stage);
    shared.stages.within_part(parts(shared, stage), &shared.closing, over).await;
    for held in generation.held.of(stage) {
        held.mark_lost(LostReason::Closed);
        // One that was released in the last moment was not held on.
        if held.lost_reason() == Some(LostReason::Closed) {
            shared.notes.add_held_on(held.recipe().label(), held.path().to_owned());
        }
    }
}
