use super::attachment::{Attachment, SessionChange};
use super::node::Value;
use super::nodes::Version;
use super::shared_node::Join;
use super::status::Status;
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::node::Node;
use crate::operation::Shared;
use crate::session::{Cause, Fired, Watch};
use crate::time::Backoff;
use crate::watch::read_watched;
use bytes::Bytes;
use docent_proto::{Code, Request, Response};
use std::convert::Infallible;
use std::future::{pending, ready};
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
    known: Option<Version>,
    watch: Option<Box<Watch>>,
    /// Pauses between attempts.
    backoff: Backoff,
}

impl NodeTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: String,
        full: String,
        status: watch::Sender<Status>,
        values: watch::Sender<Value>,
        joins: mpsc::UnboundedReceiver<Join>,
    ) -> Self {
        let (waiting, known, watch, backoff) = (Vec::new(), None, None, Backoff::endless());
        Self { shared, path, full, status, values, joins, waiting, known, watch, backoff }
    }

    /// Runs until the client is closed or the cache is `abandoned`.
    pub(super) async fn run(mut self, abandoned: CancellationToken) {
        let shared = Arc::clone(&self.shared);
        let mut attachment = Attachment::new(&shared);
        let mut up = false;
        loop {
            let generation = up.then(|| Arc::clone(&attachment.generation));
            tokio::select! {
                biased;
                () = shared.closing.cancelled() => return,
                () = abandoned.cancelled() => return,
                change = attachment.changed() => {
                    up = change.up;
                    self.session_changed(change);
                }
                // Starts with a read after each change, even if no change of the node was missed, because
                // only the read shows that.
                never = self.follow(generation.as_deref()) => match never {},
            }
        }
    }

    fn session_changed(&mut self, SessionChange { session, lost, .. }: SessionChange) {
        if lost {
            let now = self.shared.config.clock.now();
            self.status.send_if_modified(|status| {
                status.stale_since.is_none() && status.stale_since.replace(now).is_none()
            });
        }
        if session {
            self.watch = None;
        }
    }

    /// Reads the node, and again whenever its watch fires. Without a `generation` there is no link.
    ///
    /// # Cancel safety
    /// Cancel safe: the next call reads the node again.
    async fn follow(&mut self, generation: Option<&SessionGeneration>) -> Infallible {
        let Some(generation) = generation else { return self.idle().await };
        loop {
            let read = |path| Request::GetData { path, watch: true };
            match read_watched(generation, &self.full, read).await {
                Ok(Ok((Some(Response::Data { data, stat }), watch))) => {
                    let version = (stat.czxid, stat.mzxid);
                    if self.known.replace(version) != Some(version) {
                        // Copy the data: a slice of a read buffer would keep the whole buffer in memory.
                        let data = data.map_or_else(Bytes::new, |data| Bytes::copy_from_slice(&data));
                        self.values.send_replace(Some(Some(Arc::new(Node { data, stat: stat.into() }))));
                    }
                    self.rest(watch).await;
                }
                Ok(Ok((None, watch))) => {
                    self.known = None;
                    self.values.send_if_modified(|value| {
                        let is_new = !matches!(value, Some(None));
                        *value = Some(None);
                        is_new
                    });
                    self.rest(watch).await;
                }
                Ok(Ok(_)) => self.failed(Error::from_code(Code::MARSHALLING_ERROR, "watch")).await,
                Ok(Err(code)) => self.failed(Error::from_code(code, "watch")).await,
                Err(Cause::TooLarge { size, limit }) => {
                    self.failed(Error::too_large("watch", size, limit)).await;
                }
                // The attachment reports the end of the session.
                Err(Cause::Ended(_)) => return self.idle().await,
                Err(
                    Cause::LinkLost | Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. },
                ) => self.pause().await,
            }
        }
    }

    /// Records that the shown node is up to date, and waits until its new `watch` fires.
    async fn rest(&mut self, watch: Option<Box<Watch>>) {
        // The new watch exists before the old one is dropped, so the server keeps the registration.
        self.watch = watch;
        self.backoff = Backoff::endless();
        self.status.send_modify(Status::caught_up);
        // If there is no watch, the session has ended, and the attachment reports that.
        while let Some(watch) = &mut self.watch {
            tokio::select! {
                biased;
                fired = watch => {
                    self.watch = None;
                    if let Fired::Event(_) = fired {
                        return;
                    }
                }
                Some(join) = self.joins.recv() => self.joined(join),
                // Last, so that events which have already arrived are processed first.
                () = ready(()), if !self.waiting.is_empty() => {
                    self.waiting.drain(..).for_each(|join| drop(join.reply.send(Ok(()))));
                }
            }
        }
        self.idle().await;
    }

    /// Waits for the next change of the session.
    async fn idle(&mut self) -> Infallible {
        while let Some(join) = self.joins.recv().await {
            self.joined(join);
        }
        pending().await
    }

    fn joined(&mut self, join: Join) {
        self.waiting.retain(|join| !join.reply.is_closed());
        self.waiting.push(join);
    }

    /// Reports that the node cannot be read, and waits before the next attempt.
    async fn failed(&mut self, error: Error) {
        let error = error.at(&self.path);
        // Event: A cache or watch of one node cannot read its node. It retries after a pause.
        tracing::debug!(target: "docent::cache", client = %self.shared.label, path = %self.shared.namespace.join(&self.path), error = %self.shared.namespace.located(&error), "cannot read the watched node; retrying");
        let now = self.shared.config.clock.now();
        while let Ok(join) = self.joins.try_recv() {
            self.joined(join);
        }
        for join in self.waiting.extract_if(.., |join| join.wants_errors) {
            let _ = join.reply.send(Err(error.clone()));
        }
        self.status.send_modify(|status| status.failed(error, now));
        self.pause().await;
    }

    /// Waits before the next attempt, unless a handle wants it now.
    async fn pause(&mut self) {
        let until = Instant::now() + self.backoff.pause();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                Some(join) = self.joins.recv() => {
                    let is_urgent = join.wants_errors;
                    self.joined(join);
                    if is_urgent {
                        return;
                    }
                }
            }
        }
    }
}

/// Ends the waits for the task, even if it panicked or was dropped.
impl Drop for NodeTask {
    fn drop(&mut self) {
        let now = self.shared.config.clock.now();
        self.status.send_modify(|status| status.close(now));
    }
}
