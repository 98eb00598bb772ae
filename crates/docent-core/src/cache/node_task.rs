use super::attachment::{Attachment, SessionChange};
use super::node::Value;
use super::nodes::Version;
use super::shared_node::Join;
use super::status::Status;
use crate::error::Error;
use crate::node::Node;
use crate::operation::Shared;
use crate::session::{Cause, Fired, Lane, Outcome, Pending, Reply, Watch};
use crate::time::Backoff;
use crate::watch::{LONGEST_PAUSE, retry_backoff};
use bytes::Bytes;
use docent_proto::{Code, Request, Response};
use std::future::ready;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Task that caches the data of one node.
pub(super) struct NodeTask {
    shared: Arc<Shared>,
    path: String,
    full: String,
    status: watch::Sender<Status>,
    values: watch::Sender<Value>,
    joins: mpsc::UnboundedReceiver<Join>,
    /// Handles that wait until the shown node is up to date.
    waiting: Vec<Join>,
    abandoned: CancellationToken,
    attachment: Attachment,
    /// True while the link is up and the session accepts requests.
    up: bool,
    known: Option<Version>,
    watch: Option<Box<Watch>>,
    next: Next,
    /// Pauses between attempts.
    backoff: Backoff,
}

/// Next action of the task.
enum Next {
    Read,
    Reading(Pending),
    /// Waits for the creation of the node.
    Awaiting(Pending),
    /// Does nothing: the watch reports changes.
    Rest,
    /// Reads again at this time.
    Pause(Instant),
}

enum Step {
    SessionChanged(SessionChange),
    Read(Outcome),
    Awaited(Outcome),
    Fired(Fired),
    Joined(Join),
    UpToDate,
    ReadAgain,
    Closed,
}

impl NodeTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: String,
        full: String,
        status: watch::Sender<Status>,
        values: watch::Sender<Value>,
        joins: mpsc::UnboundedReceiver<Join>,
        abandoned: CancellationToken,
    ) -> Self {
        Self {
            attachment: Attachment::new(&shared),
            shared,
            path,
            full,
            status,
            values,
            joins,
            waiting: Vec::new(),
            abandoned,
            up: false,
            known: None,
            watch: None,
            next: Next::Read,
            backoff: retry_backoff(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            if let Next::Read = self.next
                && self.up
            {
                let request = Request::GetData { path: self.full.clone(), watch: true };
                self.next = Next::Reading(self.attachment.generation.session.submit(request, Lane::Call));
            }
            match self.step().await {
                Step::SessionChanged(change) => self.session_changed(change),
                Step::Read(outcome) => self.read(outcome),
                Step::Awaited(outcome) => self.awaited(outcome),
                Step::Fired(fired) => self.fired(fired),
                Step::Joined(join) => self.joined(join),
                Step::UpToDate => self.waiting.drain(..).for_each(|join| drop(join.reply.send(Ok(())))),
                Step::ReadAgain => self.next = Next::Read,
                Step::Closed => return,
            }
        }
    }

    /// Waits for the next step. Cancel safe: the outcome of a request is taken only together with the step.
    async fn step(&mut self) -> Step {
        tokio::select! {
            biased;
            () = self.shared.closing.cancelled() => Step::Closed,
            () = self.abandoned.cancelled() => Step::Closed,
            change = self.attachment.changed() => Step::SessionChanged(change),
            Some(step) = next(&mut self.next) => step,
            Some(fired) = fired(&mut self.watch) => Step::Fired(fired),
            Some(join) = self.joins.recv() => Step::Joined(join),
            // Last, so that events which have already arrived are processed first.
            () = ready(()), if self.is_resting() && !self.waiting.is_empty() => Step::UpToDate,
        }
    }

    /// Returns true if the node is read and a watch would report changes. If there is no watch, the session
    /// has ended, and the attachment reports that.
    fn is_resting(&self) -> bool {
        self.up && matches!(self.next, Next::Rest) && self.watch.is_some()
    }

    fn joined(&mut self, join: Join) {
        if let (Next::Pause(_), true) = (&self.next, join.wants_errors) {
            self.next = Next::Read;
        }
        self.waiting.retain(|join| !join.reply.is_closed());
        self.waiting.push(join);
    }

    fn session_changed(&mut self, SessionChange { session, lost, up }: SessionChange) {
        if lost {
            self.next = Next::Read;
            let now = self.shared.config.clock.now();
            self.status.send_if_modified(|status| {
                status.stale_since.is_none() && status.stale_since.replace(now).is_none()
            });
        }
        if session {
            self.watch = None;
        }
        self.up = up;
        if up {
            // Read even if no change was missed, because only the read shows that.
            self.next = Next::Read;
        }
    }

    fn fired(&mut self, fired: Fired) {
        self.watch = None;
        // The end of a session arrives as `SessionChange`. A read in flight leaves a new watch.
        if let (Fired::Event(_), Next::Rest) = (fired, &self.next) {
            self.next = Next::Read;
        }
    }

    fn read(&mut self, outcome: Outcome) {
        let Some(Reply { result, watch, .. }) = self.reply(outcome) else { return };
        match result {
            Ok(Response::Data { data, stat }) => {
                self.rest(watch);
                let version = (stat.czxid, stat.mzxid);
                if self.known.replace(version) != Some(version) {
                    // Copy the data: a slice of a read buffer would keep the whole buffer in memory.
                    let data = data.map_or_else(Bytes::new, |data| Bytes::copy_from_slice(&data));
                    self.values.send_replace(Some(Some(Arc::new(Node { data, stat: stat.into() }))));
                }
                self.caught_up();
            }
            Err(Code::NO_NODE) => {
                let request = Request::Exists { path: self.full.clone(), watch: true };
                self.next = Next::Awaiting(self.attachment.generation.session.submit(request, Lane::Call));
            }
            Ok(_) => self.refused(Code::MARSHALLING_ERROR),
            Err(code) => self.refused(code),
        }
    }

    fn awaited(&mut self, outcome: Outcome) {
        let Some(Reply { result, watch, .. }) = self.reply(outcome) else { return };
        match result {
            Err(Code::NO_NODE) if watch.is_some() => {
                self.rest(watch);
                self.known = None;
                self.values.send_if_modified(|value| {
                    let is_new = !matches!(value, Some(None));
                    *value = Some(None);
                    is_new
                });
                self.caught_up();
            }
            // The node was created between the two reads.
            Ok(_) | Err(Code::NO_NODE) => self.next = Next::Read,
            Err(code) => self.refused(code),
        }
    }

    /// Returns the reply to a request. Without a reply, the request is sent again after a pause or over the
    /// next link.
    fn reply(&mut self, outcome: Outcome) -> Option<Reply> {
        self.next = Next::Read;
        match outcome.answer() {
            Ok(reply) => return Some(reply),
            Err(cause) => match cause {
                Cause::Ended(_) => self.up = false,
                Cause::LinkLost | Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. } => {
                    self.pause();
                }
                Cause::TooLarge { size, limit } => self.failed(Error::too_large("watch", size, limit)),
            },
        }
        None
    }

    fn rest(&mut self, watch: Option<Box<Watch>>) {
        // The new watch exists before the old one is dropped, so the server keeps the registration.
        self.watch = watch;
        self.next = Next::Rest;
        self.backoff = retry_backoff();
    }

    fn pause(&mut self) {
        self.next = Next::Pause(Instant::now() + self.backoff.next().unwrap_or(LONGEST_PAUSE));
    }

    fn caught_up(&self) {
        self.status.send_modify(|status| {
            status.loaded = true;
            status.stale_since = None;
            status.last_error = None;
        });
    }

    fn refused(&mut self, code: Code) {
        self.failed(Error::from_code(code, "watch"));
    }

    fn failed(&mut self, error: Error) {
        let error = error.at(&self.path);
        // Event: A cache or watch of one node cannot read its node. It retries after a pause.
        tracing::debug!(target: "docent::cache", client = %self.shared.label, path = %self.shared.namespace.join(&self.path), error = %self.shared.namespace.located(&error), "cannot read the watched node; retrying");
        let now = self.shared.config.clock.now();
        for join in self.waiting.extract_if(.., |join| join.wants_errors) {
            let _ = join.reply.send(Err(error.clone()));
        }
        self.status.send_modify(|status| {
            status.last_error = Some(error);
            status.stale_since.get_or_insert(now);
        });
        self.pause();
    }
}

/// Ends the waits for the task, even if it panicked or was dropped.
impl Drop for NodeTask {
    fn drop(&mut self) {
        let now = self.shared.config.clock.now();
        self.status.send_modify(|status| {
            status.closed = true;
            status.stale_since.get_or_insert(now);
        });
    }
}

async fn next(next: &mut Next) -> Option<Step> {
    match next {
        Next::Reading(pending) => Some(Step::Read(pending.await)),
        Next::Awaiting(pending) => Some(Step::Awaited(pending.await)),
        Next::Pause(until) => {
            tokio::time::sleep_until(*until).await;
            Some(Step::ReadAgain)
        }
        Next::Read | Next::Rest => None,
    }
}

async fn fired(watch: &mut Option<Box<Watch>>) -> Option<Fired> {
    Some(watch.as_mut()?.await)
}
