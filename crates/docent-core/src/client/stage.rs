use super::Client;
use std::future::pending;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Stage of a client's [shutdown](crate::Client::shutdown), in order. Once a stage is reached, nothing that
/// the stage ends can be acquired or registered any more. Deliveries cannot be taken from the first stage on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// No shutdown has begun.
    Open,
    /// Kept nodes announce that they are about to leave.
    Drain,
    /// Kept nodes that belong to their session are removed.
    Deregister,
    /// Candidates leave; leaders stop and resign.
    Elections,
    /// Items in work are finished or returned. Consumers take no more items since the shutdown began.
    Deliveries,
    /// Locks and permits are released.
    Locks,
    /// The session is closed.
    Close,
}

impl Stage {
    /// Stages in which guards are released, in order.
    pub(crate) const OF_GUARDS: [Self; 3] = [Self::Elections, Self::Deliveries, Self::Locks];
}

/// Progress of a client's shutdown: the stage it has reached, and the time by which it ends.
#[derive(Debug)]
pub(crate) struct Stages {
    stage: watch::Sender<Stage>,
    /// `None` while only the operation timeout limits the close.
    end: watch::Sender<Option<Instant>>,
}

impl Default for Stages {
    fn default() -> Self {
        Self { stage: watch::Sender::new(Stage::Open), end: watch::Sender::new(None) }
    }
}

impl Stages {
    pub(crate) fn has_begun(&self, stage: Stage) -> bool {
        *self.stage.borrow() >= stage
    }

    /// Returns a receiver of each stage that is reached.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Enters a stage, unless a later one was already reached.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.send_if_modified(|reached| {
            let is_later = stage > *reached;
            *reached = stage.max(*reached);
            is_later
        });
    }

    /// Ends the shutdown by `end` at the latest. Returns true for the first request.
    pub(crate) fn end_by(&self, end: Instant) -> bool {
        let mut is_first = false;
        self.end.send_modify(|until| {
            is_first = until.is_none();
            *until = Some(until.map_or(end, |until| until.min(end)));
        });
        is_first
    }

    /// Waits for `done`, at most for one of `parts` equal parts of the remaining time, or until the client is
    /// closed. Returns `None` if `done` did not complete in that time.
    pub(crate) async fn within_part<T>(
        &self,
        parts: u32,
        closing: &CancellationToken,
        done: impl Future<Output = T>,
    ) -> Option<T> {
        let mut elapsed = std::pin::pin!(self.part_elapsed(parts));
        tokio::select! {
            biased;
            done = done => Some(done),
            () = closing.cancelled() => None,
            () = &mut elapsed => None,
        }
    }

    /// Resolves when one of `parts` equal parts of the remaining time has passed; never if there is no limit.
    pub(crate) async fn part_elapsed(&self, parts: u32) {
        let (began, mut end) = (Instant::now(), self.end.subscribe());
        loop {
            let until = *end.borrow_and_update();
            let part = until.map(|until| until.saturating_duration_since(began) / parts);
            tokio::select! {
                () = pause(part.map(|part| began + part)) => return,
                // `self` owns the sender, so the channel is never closed here.
                _ = end.changed() => {}
            }
        }
    }
}

async fn pause(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => pending().await,
    }
}

/// Waits until the [shutdown](Client::shutdown) of `client` has reached `stage`, for recipes that then end
/// their work. A client that is closed without a shutdown never reaches a stage.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn stage_reached(client: &Client, stage: Stage) {
    let mut stages = client.shared().stages.subscribe();
    if stages.wait_for(|reached| *reached >= stage).await.is_err() {
        pending::<()>().await;
    }
}
