mod absent;
mod exact;
mod persistent;
mod preparation;
mod read_node;

use self::persistent::ForeignWrites;
use self::read_node::Found;
use super::armed::Armed;
use super::choice::Choice;
use super::node::occupied;
use super::status_log::StatusLog;
use super::table::TableEntry;
use super::target::Target;
use super::{Desired, Drained, KeptStatus, Progress, TaskChannels, witness};
use crate::client::{ParentKind, Stage};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::node::CreateMode;
use crate::operation::Shared;
use crate::session::{Cause, Fired, SessionEnd};
use crate::time::Backoff;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Task of a kept node: brings the node to the state of its last `Desired`, until the node is wanted absent
/// and is.
///
/// Every step reads before it writes and can be repeated, so nothing depends on replies: the node is read
/// again. If the watch of the last read has not fired on its link, that read still counts (decision 21).
/// Every write is exact, because a late write could bring the node back, or change another client's node
/// (decision 11).
pub(super) struct Reconciler {
    shared: Arc<Shared>,
    path: String,
    full: String,
    /// Mode of the node, which is not sequential.
    mode: CreateMode,
    /// Kind of node that missing parents are created as.
    parents: ParentKind,
    wanted: watch::Receiver<Desired>,
    status: watch::Sender<KeptStatus>,
    progress: watch::Sender<Progress>,
    /// Notified of each new successor: a handle that wants a node that is about to be removed.
    successors: watch::Receiver<u64>,
    /// Notified of each stage of the client's shutdown.
    stages: watch::Receiver<Stage>,
    /// Stage at which the last request was read.
    stage: Stage,
    /// Number of the last generation that is known to have ended.
    ended: u64,
    /// Data whose preparation has succeeded last.
    prepared: Option<Bytes>,
    /// Node as it was last read, if it was as wanted.
    armed: Option<Armed>,
    /// Time since which another client's node has been at the path.
    occupied: Option<Instant>,
    foreign_writes: ForeignWrites,
    choice: Choice,
    /// Time of the next touch of a node with a time to live.
    touch: Option<Instant>,
    backoff: Backoff,
    status_log: StatusLog,
}

impl Reconciler {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: String,
        full: String,
        parents: ParentKind,
        channels: TaskChannels,
    ) -> Self {
        let TaskChannels { wanted, status, progress } = channels;
        let (mode, counts) = (wanted.borrow().mode, wanted.borrow().base.is_none());
        Self {
            successors: shared.kept.successors(),
            status_log: StatusLog::new(&shared.instruments, &full, counts),
            stages: shared.stages.subscribe(),
            stage: Stage::Open,
            shared,
            path,
            full,
            mode,
            parents,
            wanted,
            status,
            progress,
            ended: 0,
            prepared: None,
            armed: None,
            occupied: None,
            foreign_writes: ForeignWrites::default(),
            choice: Choice::default(),
            touch: None,
            backoff: Backoff::endless(),
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
            // Marked before the check, so that a successor that arrives after the check ends the next pause.
            self.successors.mark_unchanged();
            if let Some(successor) = self.shared.kept.successor(&self.full) {
                self.hand_over_to(successor);
            }
            let Target { data, number } = self.target(&generation);
            let done = match data {
                Some(data) => match self.prepare(&generation, &data, number).await {
                    Ok(()) => self.be_present(&generation, &data, number).await,
                    Err(error) => Err(error),
                },
                None => {
                    self.drained(Drained::Unpublished);
                    self.be_absent(&generation).await
                }
            };
            match done {
                // Leave the table first: a caller that learns of the removal may immediately keep a node at
                // the path again.
                Ok(true) => match entered.leave() {
                    Some(successor) => self.hand_over_to(successor),
                    None => {
                        self.status_log.removed(self.wanted.borrow().brief);
                        self.set_status(KeptStatus::Removed);
                        return;
                    }
                },
                Ok(false) | Err(StepError::Retry) => {}
                Err(StepError::Busy) => {
                    // Counts as an attempt, because the client's `Connected` must not wait for a node that is
                    // itself waiting.
                    self.attempted(&generation);
                    self.pause().await;
                }
                Err(StepError::Ended) => {
                    self.ended = generation.number;
                    self.set_status(KeptStatus::Pending);
                }
                Err(StepError::Closed) => return self.closed(&mut entered),
                Err(StepError::Refused(error)) => {
                    let error = if error.is_of_own_node() { error } else { error.at(&self.path) };
                    self.refused(&generation, error, number).await;
                }
                Err(StepError::Unprepared(error)) => {
                    let path = error.path().unwrap_or(&self.path).to_owned();
                    self.refused(&generation, error.at(&path), number).await;
                }
            }
        }
    }

    /// Returns the state that the node must have now.
    fn target(&mut self, generation: &SessionGeneration) -> Target {
        // A dropped handle wants the node absent.
        let dropped = self.wanted.has_changed().is_err();
        self.stage = *self.stages.borrow_and_update();
        let Desired { data, recreate, number, final_data, .. } = self.wanted.borrow_and_update().clone();
        // Without re-creation, the node is kept only while it is present in this session.
        let wanted = data.filter(|_| !dropped && (recreate || self.is_present(generation)));
        match self.is_ephemeral() {
            true => Target::at(self.stage, number, wanted, final_data, self.choice.shown()),
            // Nodes that belong to no session remain when the client is closed.
            false => Target::of(number, wanted),
        }
    }

    fn is_ephemeral(&self) -> bool {
        self.mode == CreateMode::Ephemeral
    }

    /// Reports to the drain of the client's shutdown whether readers can see the final data. Skipped if the
    /// last request was read before the drain began.
    fn drained(&self, drained: Drained) {
        if self.stage >= Stage::Drain {
            self.progress.send_modify(|progress| progress.drained = Some(drained));
        }
    }

    /// Records that an attempt was made in this generation.
    fn attempted(&self, generation: &SessionGeneration) {
        self.progress.send_modify(|progress| progress.attempted = generation.number);
    }

    /// Reports that the request with this number has failed.
    fn failed(&mut self, error: Error, number: Option<u64>) {
        self.set_status(KeptStatus::Failing(error));
        if let Some(number) = number {
            self.progress.send_modify(|progress| progress.refused = number);
        }
        self.drained(Drained::Unpublished);
    }

    /// Continues on behalf of `successor`: its predecessor sees the node as removed, and the node remains for
    /// the successor.
    fn hand_over_to(&mut self, successor: TaskChannels) {
        self.set_status(KeptStatus::Removed);
        self.serve(successor);
    }

    fn serve(&mut self, successor: TaskChannels) {
        let TaskChannels { wanted, status, progress } = successor;
        (self.wanted, self.status, self.progress) = (wanted, status, progress);
        (self.occupied, self.foreign_writes, self.touch) = (None, ForeignWrites::default(), None);
        self.prepared = None;
        self.choice.reset();
        self.backoff = Backoff::endless();
    }

    fn set_status(&mut self, status: KeptStatus) {
        self.status_log.count(matches!(status, KeptStatus::Present { .. }));
        self.status.send_replace(status);
    }

    /// Follows what another client has chosen by data that it wrote into the node. Returns true if the node
    /// must now show other data than before.
    fn follow_choice(&mut self, generation: &SessionGeneration, found: &Bytes, mzxid: i64) -> bool {
        let of = (generation.number, generation.lease.timeout());
        let chosen = match &*self.wanted.borrow() {
            Desired { data: Some(data), final_data: Some(_), read_choice: Some(read), .. } => {
                self.stage < Stage::Deregister && self.choice.follow((found, mzxid), data, of, *read)
            }
            _ => false,
        };
        if chosen {
            self.status_log.chosen(self.choice.shown());
            self.progress.send_modify(|progress| progress.shown = self.choice.shown());
        }
        chosen
    }

    fn is_present(&self, generation: &SessionGeneration) -> bool {
        matches!(*self.status.borrow(), KeptStatus::Present { generation: number } if number == generation.number)
    }

    /// Ends the task because the client is closed. The node is deleted with its session.
    fn closed(&mut self, entered: &mut TableEntry) {
        loop {
            let successor = entered.leave();
            let error = Error::new(self.shared.closed(), "create").at(&self.path);
            self.set_status(KeptStatus::Failing(error));
            self.progress.send_modify(|progress| progress.refused = u64::MAX);
            match successor {
                Some(successor) => self.serve(successor),
                None => return,
            }
        }
    }

    /// Makes one attempt to create or write the node, and waits for a reason for the next attempt.
    async fn be_present(
        &mut self,
        generation: &Arc<SessionGeneration>,
        data: &Bytes,
        number: Option<u64>,
    ) -> Result<bool, StepError> {
        let found = self.read_node(generation, data).await?;
        match found {
            Found::Changed => return Ok(false),
            Found::Current(mut armed) => {
                self.occupied = None;
                if self.foreign_writes.is_calm() {
                    self.backoff = Backoff::endless();
                }
                self.touch_if_due(generation).await?;
                self.progress.send_modify(|progress| progress.present = generation.number);
                self.status_log.present(generation.number, self.wanted.borrow().brief);
                self.set_status(KeptStatus::Present { generation: generation.number });
                if let Some(number) = number {
                    self.progress.send_modify(|progress| progress.fulfilled = number);
                }
                self.drained(Drained::Published);
                self.attempted(generation);
                let (shared, full) = (Arc::clone(&self.shared), self.full.clone());
                let (is_ephemeral, touch) = (self.is_ephemeral(), self.touch);
                tokio::select! {
                    () = self.wait(generation, armed.fired(), touch) => {}
                    () = witness::create_witness(&shared, generation, &full), if is_ephemeral => {}
                }
                self.armed = Some(armed);
                self.progress.send_modify(|progress| progress.present = 0);
            }
            Found::Foreign(session_id, mut armed) => {
                self.drained(Drained::Unpublished);
                let since = *self.occupied.get_or_insert_with(Instant::now);
                // The node of a restarted process expires with its session, within a timeout. After twice
                // that time the status becomes failing, and the task keeps waiting.
                let patience = since + generation.lease.timeout() * 2;
                if Instant::now() < patience {
                    self.status_log.waiting(session_id);
                    self.set_status(KeptStatus::Occupied { session_id });
                } else {
                    self.status_log.occupied(session_id);
                    self.failed(occupied(&self.path, session_id), number);
                }
                self.attempted(generation);
                let until = (Instant::now() < patience).then_some(patience);
                self.wait(generation, armed.fired(), until).await;
            }
        }
        Ok(false)
    }

    /// Waits for a change of the node, of the request or of the session, or until `until`.
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
                    self.set_status(KeptStatus::Pending);
                }
            }
            _ = self.wanted.changed() => {}
            _ = self.stages.changed() => {}
            () = late => {}
            () = self.shared.closing.cancelled() => {}
        }
    }

    async fn refused(&mut self, generation: &SessionGeneration, error: Error, number: Option<u64>) {
        self.status_log.refused(&self.shared.namespace.located(&error));
        self.failed(error, number);
        self.attempted(generation);
        self.pause().await;
    }

    /// Waits before the next attempt, unless the request changes in the meantime.
    async fn pause(&mut self) {
        let pause = self.backoff.pause();
        // `successors` counts those of all nodes, but only one at this path ends the pause.
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

/// Reason why a step could not be finished.
enum StepError {
    /// The link was lost: repeat the step, which waits for the next link.
    Retry,
    /// A server or the client is overloaded: repeat the step after a pause.
    Busy,
    /// The session has ended.
    Ended,
    /// The client is closed.
    Closed,
    /// The servers refused the request.
    Refused(Error),
    /// The handle's preparation refused the data.
    Unprepared(Error),
}

impl From<Cause> for StepError {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::LinkLost => Self::Retry,
            Cause::QueueFull | Cause::Deadline => Self::Busy,
            Cause::TooLarge { size, limit } => Self::Refused(Error::too_large("create", size, limit)),
            Cause::TooManyEphemerals { bytes, limit } => {
                Self::Refused(Error::too_many_ephemerals("create", bytes, limit))
            }
            Cause::Ended(SessionEnd::Closed) => Self::Closed,
            Cause::Ended(_) => Self::Ended,
        }
    }
}
