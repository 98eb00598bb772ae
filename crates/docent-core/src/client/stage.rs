use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Stage of a client's [shutdown](crate::Client::shutdown). They come in this order; once a stage has come,
/// nothing of its kind begins any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// No shutdown has begun.
    Open,
    /// Kept nodes say that they are about to leave.
    Drain,
    /// Kept nodes that go with their session are removed.
    Deregister,
    /// Candidates leave, leaders stop and resign.
    Elections,
    /// Consumers take nothing more, and items that are in work are finished or given back.
    Deliveries,
    /// Locks and permits are released.
    Locks,
    /// The session is ended.
    Close,
}

impl Stage {
    /// Stages at which guards are given up, in their order.
    pub(crate) const OF_GUARDS: [Self; 3] = [Self::Elections, Self::Deliveries, Self::Locks];
}

/// Progress of a client's shutdown: the stage it has come to, and the time by which it is over.
#[derive(Debug)]
pub(crate) struct Stages {
    stage: watch::Sender<Stage>,
    /// `None` while there is no limit but that of operations.
    end: watch::Sender<Option<Instant>>,
}

impl Default for Stages {
    fn default() -> Self {
        Self { stage: watch::Sender::new(Stage::Open), end: watch::Sender::new(None) }
    }
}

impl Stages {
    pub(crate) fn has_come(&self, stage: Stage) -> bool {
        *self.stage.borrow() >= stage
    }

    /// Tells of each stage that comes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Enters a stage, unless a later one has come.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.send_if_modified(|reached| {
            let is_later = stage > *reached;
            *reached = stage.max(*reached);
            is_later
        });
    }

    /// Ends the shutdown by `end` at the latest. True when it is the first one that is asked for.
    pub(crate) fn end_by(&self, end: Instant) -> bool {
        let mut is_first = false;
        self.end.send_modify(|until| {
            is_first = until.is_none();
            *until = Some(until.map_or(end, |until| until.min(end)));
        });
        is_first
    }

    /// Waits for `done`, at most for one of `parts` equal parts of the time that is left, or until the client
    /// is closed. `None` when it was not done by then.
    pub(crate) async fn within_part<T>(
        &self,
        parts: u32,
        closing: &CancellationToken,
        done: impl Future<Output = T>,
    ) -> Option<T> {
        let mut over = std::pin::pin!(self.part_over(parts));
        tokio::select! {
            biased;
            done = done => Some(done),
            () = closing.cancelled() => None,
            () = &mut over => None,
        }
    }

    /// Resolves when one of `parts` equal parts of the time that is left is over; never without a limit.
    pub(crate) async fn part_over(&self, parts: u32) {
        let (began, mut end) = (Instant::now(), self.end.subscribe());
        loop {
            let until = *end.borrow_and_update();
            let part = until.map(|until| until.saturating_duration_since(began) / parts);
            tokio::select! {
                () = pause(part.map(|part| began + part)) => return,
                // The sender is this one's.
                _ = end.changed() => {}
            }
        }
    }
}

async fn pause(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
