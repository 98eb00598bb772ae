use super::attachment::{Attachment, News};
use super::node::Value;
use super::nodes::Version;
use super::shared_node::Join;
use super::status::Status;
use crate::error::Error;
use crate::node::Node;
use crate::operation::Shared;
use crate::session::{Cause, Fired, Lane, Outcome, Pending, Reply, Watch};
use crate::time::Backoff;
use crate::watch::{LONGEST_PAUSE, patience};
use bytes::Bytes;
use docent_proto::{Code, Request, Response};
use std::future::ready;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Keeps the data of one node.
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
    /// True while the link is up and the session takes requests.
    up: bool,
    known: Option<Version>,
    watch: Option<Box<Watch>>,
    next: Next,
    /// Pauses between attempts.
    patience: Backoff,
}

/// Next action of the task.
enum Next {
    Read,
    Reading(Pending),
    /// Waits for the creation of the node.
    Awaiting(Pending),
    /// Nothing: the watch tells of changes.
    Rest,
    /// Reads again then.
    Pause(Instant),
}

enum Step {
    News(News),
    Read(Outcome),
    Awaited(Outcome),
    Fired(Fired),
    Joined(Join),
    UpToDate,
    Again,
    Over,
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
            patience: patience(),
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
                Step::News(news) => self.news(news),
                Step::Read(outcome) => self.read(outcome),
                Step::Awaited(outcome) => self.awaited(outcome),
                Step::Fired(fired) => self.fired(fired),
                Step::Joined(join) => self.joined(join),
                Step::UpToDate => self.waiting.drain(..).for_each(|join| drop(join.told.send(Ok(())))),
                Step::Again => self.next = Next::Read,
                Step::Over => return,
            }
        }
    }

    /// Waits for what happens next. Cancel safe: the outcome of a request is taken only with the step.
    async fn step(&mut self) -> Step {
        tokio::select! {
            biased;
            () = self.shared.closing.cancelled() => Step::Over,
            () = self.abandoned.cancelled() => Step::Over,
            news = self.attachment.news() => Step::News(news),
            Some(step) = next(&mut self.next) => step,
            Some(fired) = fired(&mut self.watch) => Step::Fired(fired),
            Some(join) = self.joins.recv() => Step::Joined(join),
            // The last: an event that has arrived comes before it.
            () = ready(()), if self.is_resting() && !self.waiting.is_empty() => Step::UpToDate,
        }
    }

    /// True when nothing is known of the node that was not read, and a watch would tell. Without one the
    /// session is over: news of that follow.
    fn is_resting(&self) -> bool {
        self.up && matches!(self.next, Next::Rest) && self.watch.is_some()
    }

    fn joined(&mut self, join: Join) {
        if let (Next::Pause(_), true) = (&self.next, join.hears_errors) {
            self.next = Next::Read;
        }
        self.waiting.retain(|join| !join.told.is_closed());
        self.waiting.push(join);
    }

    fn news(&mut self, News { session, lost, up }: News) {
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
            // Also where no change was missed: only the read shows that.
            self.next = Next::Read;
        }
    }

    fn fired(&mut self, fired: Fired) {
        self.watch = None;
        // The end of a session comes as `News`. A read under way leaves a watch of its own.
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
                    // A copy: a part of a read buffer would keep all of it in memory.
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
                    let news = !matches!(value, Some(None));
                    *value = Some(None);
                    news
                });
                self.caught_up();
            }
            // It was created between the two reads.
            Ok(_) | Err(Code::NO_NODE) => self.next = Next::Read,
            Err(code) => self.refused(code),
        }
    }

    /// The reply to a request; without one it is sent again, after a pause or over the next link.
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
        // The new one is there before the old one goes: the server keeps its watch.
        self.watch = watch;
        self.next = Next::Rest;
        self.patience = patience();
    }

    fn pause(&mut self) {
        self.next = Next::Pause(Instant::now() + self.patience.next().unwrap_or(LONGEST_PAUSE));
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
        tracing::debug!(path = self.path, %error, "cannot read the node");
        let now = self.shared.config.clock.now();
        for join in self.waiting.extract_if(.., |join| join.hears_errors) {
            let _ = join.told.send(Err(error.clone()));
        }
        self.status.send_modify(|status| {
            status.last_error = Some(error);
            status.stale_since.get_or_insert(now);
        });
        self.pause();
    }
}

/// Ends the waits for the task, also where it panicked or was dropped.
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
            Some(Step::Again)
        }
        Next::Read | Next::Rest => None,
    }
}

async fn fired(watch: &mut Option<Box<Watch>>) -> Option<Fired> {
    Some(watch.as_mut()?.await)
}
