mod absent;
mod lasting;
mod look;

use self::look::Found;
use super::armed::Armed;
use super::life::{Contest, Life};
use super::node::occupied;
use super::table_entry::TableEntry;
use super::told::Told;
use super::trouble::Trouble;
use super::wish::Wish;
use super::{Desired, Drained, KeptStatus, Progress, TaskEnd, witness};
use crate::client::Stage;
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Fired, SessionEnd};
use crate::time::{Backoff, RetryPolicy};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Task of a kept node: makes the node as its last `Desired` wants it, until it is wanted absent and is.
///
/// Every step reads before it writes and can be repeated, so that nothing depends on replies: the node is
/// looked up again. Where the watch of the last look has not fired on its link, that look counts (decision
/// 21). Every write is exact: one that is applied late could bring the node back, or change that of somebody
/// else (decision 11).
pub(super) struct Reconciler {
    shared: Arc<Shared>,
    path: String,
    full: String,
    life: Life,
    wanted: watch::Receiver<Desired>,
    status: watch::Sender<KeptStatus>,
    progress: Progress,
    /// Tells of each new successor: a handle that wants a node which is about to be removed.
    successors: watch::Receiver<u64>,
    /// Tells of each stage of the client's shutdown.
    stages: watch::Receiver<Stage>,
    /// Stage that the last wish was read at.
    stage: Stage,
    /// Number of the last generation that is known to have ended.
    ended: u64,
    /// Node as it was seen last, when it was as wanted.
    armed: Option<Armed>,
    /// Time since when somebody else's node is at the path.
    occupied: Option<Instant>,
    contest: Contest,
    /// Time of the next touch, of a node with a time to live.
    touch: Option<Instant>,
    backoff: Backoff,
    told: Told,
}

impl Reconciler {
    pub(super) fn new(shared: Arc<Shared>, path: String, full: String, life: Life, end: TaskEnd) -> Self {
        let TaskEnd { wanted, status, progress } = end;
        Self {
            successors: shared.kept.successors(),
            told: Told::new(&shared.instruments, &path),
            stages: shared.stages.subscribe(),
            stage: Stage::Open,
            shared,
            path,
            full,
            life,
            wanted,
            status,
            progress,
            ended: 0,
            armed: None,
            occupied: None,
            contest: Contest::default(),
            touch: None,
            backoff: patience(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut entered = TableEntry::new(&self.shared, &self.full);
        loop {
            let generation = match self.shared.generation() {
                generation if generation.number > self.ended => generation,
                _ => match self.shared.next_generation(self.ended).await {
                    Ok(generation) => generation,
                    Err(_) => return self.closed(&mut entered),
                },
            };
            // Marked before the look, so that a successor that comes after it ends the next pause.
            self.successors.mark_unchanged();
            if let Some(successor) = self.shared.kept.successor(&self.full) {
                self.hand_on(successor);
            }
            let Wish { data, number } = self.wish(&generation);
            let done = match data {
                Some(data) => self.be_present(&generation, &data, number).await,
                None => {
                    self.drained(Drained::Unsaid);
                    self.be_absent(&generation).await
                }
            };
            match done {
                // The table is left first: a caller that hears that the node is removed may keep a node there
                // at once.
                Ok(true) => match entered.leave() {
                    Some(successor) => self.hand_on(successor),
                    None => {
                        self.told.removed();
                        self.tell(KeptStatus::Removed);
                        return;
                    }
                },
                Ok(false) | Err(Trouble::Again) => {}
                Err(Trouble::Busy) => {
                    // Counts as an attempt: the client's `Connected` must not wait for a node that waits
                    // itself.
                    self.progress.attempted.send_replace(generation.number);
                    self.pause().await;
                }
                Err(Trouble::Ended) => {
                    self.ended = generation.number;
                    self.tell(KeptStatus::Pending);
                }
                Err(Trouble::Closed) => return self.closed(&mut entered),
                Err(Trouble::Refused(error)) => self.refused(&generation, error, number).await,
            }
        }
    }

    /// The state that the node must have now.
    fn wish(&mut self, generation: &SessionGeneration) -> Wish {
        // A handle that was dropped wants the node absent.
        let dropped = self.wanted.has_changed().is_err();
        self.stage = *self.stages.borrow_and_update();
        let Desired { data, anew, number, farewell, .. } = self.wanted.borrow_and_update().clone();
        // A settled node is kept only while it is present in this session: once gone it is gone for good.
        let wanted = data.filter(|_| !dropped && (anew || self.is_present(generation)));
        match self.life.is_ephemeral() {
            true => Wish::at(self.stage, number, wanted, farewell),
            // Others stay when the client is closed.
            false => Wish::of(number, wanted),
        }
    }

    /// Tells the drain of the client's shutdown whether it can be heard of, once the wish is one of the
    /// drain: it may have begun since the wish was read.
    fn drained(&self, drained: Drained) {
        if self.stage >= Stage::Drain {
            self.progress.drained.send_replace(Some(drained));
        }
    }

    /// Notes that the wish with this number was not fulfilled.
    fn not_fulfilled(&self, wish: Option<u64>) {
        wish.map(|number| self.progress.refused.send_replace(number));
        self.drained(Drained::Unsaid);
    }

    /// Goes on for `successor`: its predecessor is told that the node is removed, and the node stays for the
    /// successor.
    fn hand_on(&mut self, successor: TaskEnd) {
        self.tell(KeptStatus::Removed);
        self.serve(successor);
    }

    fn serve(&mut self, successor: TaskEnd) {
        let TaskEnd { wanted, status, progress } = successor;
        (self.wanted, self.status, self.progress) = (wanted, status, progress);
        (self.occupied, self.contest, self.touch) = (None, Contest::default(), None);
        self.backoff = patience();
    }

    fn tell(&mut self, status: KeptStatus) {
        self.told.count(matches!(status, KeptStatus::Present { .. }));
        self.status.send_replace(status);
    }

    fn is_present(&self, generation: &SessionGeneration) -> bool {
        matches!(*self.status.borrow(), KeptStatus::Present { generation: number } if number == generation.number)
    }

    /// The client is closed: the node goes with its session.
    fn closed(&mut self, entered: &mut TableEntry) {
        loop {
            let successor = entered.leave();
            let error = Error::new(self.shared.closed(), "create").at(&self.path);
            self.progress.refused.send_replace(u64::MAX);
            self.tell(KeptStatus::Failing(error));
            match successor {
                Some(successor) => self.serve(successor),
                None => return,
            }
        }
    }

    /// Makes one attempt to have the node, and waits for a reason to make the next.
    async fn be_present(
        &mut self,
        generation: &Arc<SessionGeneration>,
        data: &Bytes,
        wish: Option<u64>,
    ) -> Result<bool, Trouble> {
        let found = self.look(generation, data).await?;
        match found {
            Found::Changed => return Ok(false),
            Found::AsWanted(mut armed) => {
                self.occupied = None;
                if self.contest.is_over() {
                    self.backoff = patience();
                }
                self.touch_if_due(generation).await?;
                self.progress.present.send_replace(generation.number);
                self.told.present(generation.number);
                self.tell(KeptStatus::Present { generation: generation.number });
                wish.map(|number| self.progress.fulfilled.send_replace(number));
                self.drained(Drained::Said);
                self.progress.attempted.send_replace(generation.number);
                let (shared, full) = (Arc::clone(&self.shared), self.full.clone());
                let (life, touch) = (self.life, self.touch);
                tokio::select! {
                    () = self.wait(generation, armed.fired(), touch) => {}
                    () = witness::create_witness(&shared, generation, &full), if life.is_ephemeral() => {}
                }
                self.armed = Some(armed);
                self.progress.present.send_replace(0);
            }
            Found::Foreign(session_id, mut armed) => {
                self.drained(Drained::Unsaid);
                let since = *self.occupied.get_or_insert_with(Instant::now);
                // The node of a process that was restarted goes with its session, within a timeout. After
                // twice that the status says that it fails; the node is waited for on.
                let patience = since + generation.lease.timeout() * 2;
                let status = if Instant::now() < patience {
                    self.told.waiting(session_id);
                    KeptStatus::Occupied { session_id }
                } else {
                    self.told.occupied(session_id);
                    self.not_fulfilled(wish);
                    KeptStatus::Failing(occupied(&self.path, session_id))
                };
                self.tell(status);
                self.progress.attempted.send_replace(generation.number);
                let until = (Instant::now() < patience).then_some(patience);
                self.wait(generation, armed.fired(), until).await;
            }
        }
        Ok(false)
    }

    /// Waits for a change of the node, of the wish or of the session, or until `until`.
    async fn wait(
        &mut self,
        generation: &SessionGeneration,
        fired: impl Future<Output = Fired>,
        until: Option<Instant>,
    ) {
        let late = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            fired = fired => {
                if matches!(fired, Fired::Ended(end) if end != SessionEnd::Closed) {
                    self.ended = generation.number;
                    self.tell(KeptStatus::Pending);
                }
            }
            _ = self.wanted.changed() => {}
            _ = self.stages.changed() => {}
            () = late => {}
            () = self.shared.closing.cancelled() => {}
        }
    }

    async fn refused(&mut self, generation: &SessionGeneration, error: Error, wish: Option<u64>) {
        let error = if error.is_of_own_node() { error } else { error.at(&self.path) };
        self.told.refused(&error);
        self.not_fulfilled(wish);
        self.tell(KeptStatus::Failing(error));
        self.progress.attempted.send_replace(generation.number);
        self.pause().await;
    }

    /// Waits before the next attempt, unless something else is wanted meanwhile.
    async fn pause(&mut self) {
        let pause = self.backoff.next().unwrap_or(LONGEST_PAUSE);
        // `successors` counts those of all nodes: only one at this path ends the pause.
        let inherited = async {
            while !self.shared.kept.has_successor(&self.full) {
                if self.successors.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Ok(()) = self.wanted.changed() => {}
            _ = self.stages.changed() => {}
            () = inherited => {}
            () = self.shared.closing.cancelled() => {}
        }
    }
}

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Pauses between attempts that are refused.
fn patience() -> Backoff {
    RetryPolicy::exponential().between(Duration::from_millis(200), LONGEST_PAUSE).start()
}
