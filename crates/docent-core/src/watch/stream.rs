//! Streams of a node's data, existence or children, over re-armed one-shot watches.
//!
//! A read and its watch are one step at the server, so every change after the read is reported, and a change
//! between watch and read is in the next read. After a lost link, the session's watches are re-armed and fire
//! for changes made during the gap. In a new session the node is read again, and only a change is emitted.

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::node::{Children, Node, Stat};
use crate::operation::Shared;
use crate::session::{Cause, Fired, Lane, SessionEnd, Watch};
use crate::task::SyncStream;
use crate::time::Backoff;
use docent_proto::{Code, EventKind, Request, Response};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

impl Client {
    /// Follows a node's data: `None` while the node does not exist. Emits the current state first, then each
    /// change by transaction, even if the new data equals the old. Intermediate values may be skipped, but
    /// never the last one. A second `None` in a row means that a node was created and deleted in between.
    ///
    /// The stream survives lost links and sessions and ends only when the client is closed. An error that
    /// does not concern the connection, such as `NoAuth`, is emitted once, and the stream keeps retrying.
    ///
    /// # On drop
    /// The watch at the server is removed.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn watch_data(&self, path: &str) -> Result<WatchStream<Node>, Error> {
        let full = self.shared().namespace.full("watch_data", path)?;
        let read = |path| Request::GetData { path, watch: true };
        Ok(WatchLoop::start(self, "watch_data", path, full, read, data))
    }

    /// Follows the list of servers that the ensemble keeps in `/zookeeper/config`, outside of any chroot.
    pub(crate) fn watch_config(&self) -> WatchStream<Node> {
        const PATH: &str = "/zookeeper/config";
        let read = |path| Request::GetData { path, watch: true };
        WatchLoop::start(self, "track_ensemble", PATH, PATH.to_owned(), read, data)
    }

    /// Follows the children of a node: `None` while the node does not exist. Otherwise the same as
    /// [`watch_data`](Self::watch_data).
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn watch_children(&self, path: &str) -> Result<WatchStream<Children>, Error> {
        let full = self.shared().namespace.full("watch_children", path)?;
        let read = |path| Request::GetChildren2 { path, watch: true };
        Ok(WatchLoop::start(self, "watch_children", path, full, read, children))
    }

    /// Follows the stat of a node: `None` while the node does not exist. Emits when the node is created or
    /// deleted, or when its data is set. Otherwise the same as [`watch_data`](Self::watch_data).
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn watch_exists(&self, path: &str) -> Result<WatchStream<Stat>, Error> {
        let full = self.shared().namespace.full("watch_exists", path)?;
        Ok(WatchLoop::start(self, "watch_exists", path, full, exists, |response| existence(&response)))
    }
}

/// A stream of snapshots of one node, `None` while the node does not exist. See [`Client::watch_data`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct WatchStream<T>(SyncStream<Result<Option<T>, Error>>);

impl<T> Stream for WatchStream<T> {
    type Item = Result<Option<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl<T> fmt::Debug for WatchStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").finish_non_exhaustive()
    }
}

/// Version of a snapshot: the transactions that created the node and that last changed it.
type Version = (i64, i64);

/// Converts an answer to a snapshot with its version; `None` for an answer of the wrong kind.
type Understand<T> = fn(Response) -> Option<(T, Version)>;

fn exists(path: String) -> Request {
    Request::Exists { path, watch: true }
}

fn data(response: Response) -> Option<(Node, Version)> {
    let Response::Data { data, stat } = response else { return None };
    Some((Node { data: data.unwrap_or_default(), stat: stat.into() }, (stat.czxid, stat.mzxid)))
}

fn children(response: Response) -> Option<(Children, Version)> {
    let Response::Children { names, stat: Some(stat) } = response else { return None };
    Some((Children { names, stat: stat.into() }, (stat.czxid, stat.pzxid)))
}

fn existence(response: &Response) -> Option<(Stat, Version)> {
    let Response::Stat(stat) = response else { return None };
    Some(((*stat).into(), (stat.czxid, stat.mzxid)))
}

struct WatchLoop<T> {
    // Not a `Client`, because a stream does not keep its client open.
    shared: Arc<Shared>,
    operation: &'static str,
    path: String,
    full: String,
    read: fn(String) -> Request,
    understand: Understand<T>,
    /// Last emitted snapshot: none yet, no node, or a node's version.
    emitted: Option<Option<Version>>,
    watch: Option<Box<Watch>>,
    /// The last generation that is known to have ended.
    ended: u64,
    failed: Option<ErrorKind>,
    backoff: Backoff,
}

/// Result of one read.
enum ReadOutcome<T> {
    /// The snapshot has changed.
    Emit(Result<Option<T>, Error>),
    /// The snapshot is unchanged: wait for the watch, or read again if there is none.
    Unchanged,
    /// The client is closed.
    Closed,
}

impl<T: Send + 'static> WatchLoop<T> {
    fn start(
        client: &Client,
        operation: &'static str,
        path: &str,
        full: String,
        read: fn(String) -> Request,
        understand: Understand<T>,
    ) -> WatchStream<T> {
        let watching = Self {
            shared: Arc::clone(client.shared()),
            operation,
            path: path.to_owned(),
            full,
            read,
            understand,
            emitted: None,
            watch: None,
            ended: 0,
            failed: None,
            backoff: Backoff::endless(),
        };
        let stream = stream::unfold(watching, |mut watching| async move {
            let item = watching.next().await?;
            Some((item, watching))
        });
        WatchStream(SyncStream::new(stream))
    }

    async fn next(&mut self) -> Option<Result<Option<T>, Error>> {
        loop {
            if let Some(watch) = &mut self.watch {
                let fired = watch.await;
                self.watch = None;
                match fired {
                    Fired::Ended(SessionEnd::Closed) => return None,
                    // The node may be deleted before it is read; then emit its deletion.
                    Fired::Event(EventKind::Created) if self.emitted == Some(None) => self.emitted = None,
                    Fired::Event(_) | Fired::Ended(_) => {}
                }
            }
            let generation = self.generation().await?;
            match self.read_once(&generation).await {
                ReadOutcome::Emit(item) => return Some(item),
                ReadOutcome::Unchanged => {}
                ReadOutcome::Closed => return None,
            }
        }
    }

    async fn generation(&self) -> Option<Arc<SessionGeneration>> {
        let generation = self.shared.generation();
        if generation.number > self.ended {
            Some(generation)
        } else {
            self.shared.next_generation(self.ended).await.ok()
        }
    }

    async fn read_once(&mut self, generation: &SessionGeneration) -> ReadOutcome<T> {
        match read_watched(generation, &self.full, self.read).await {
            Ok(Ok((response, watch))) => {
                self.watch = watch;
                match response {
                    Some(response) => self.node(response),
                    None => self.no_node(),
                }
            }
            Ok(Err(code)) => self.failed(Error::from_code(code, self.operation)).await,
            Err(Cause::Ended(SessionEnd::Closed)) => ReadOutcome::Closed,
            Err(Cause::Ended(_)) => {
                self.ended = generation.number;
                ReadOutcome::Unchanged
            }
            Err(Cause::LinkLost) => ReadOutcome::Unchanged,
            Err(Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. }) => self.pause().await,
            Err(Cause::TooLarge { size, limit }) => {
                self.failed(Error::too_large(self.operation, size, limit)).await
            }
        }
    }

    fn node(&mut self, response: Response) -> ReadOutcome<T> {
        self.failed = None;
        self.backoff = Backoff::endless();
        match (self.understand)(response) {
            Some((snapshot, version)) if self.emitted != Some(Some(version)) => {
                self.emitted = Some(Some(version));
                ReadOutcome::Emit(Ok(Some(snapshot)))
            }
            _ => ReadOutcome::Unchanged,
        }
    }

    fn no_node(&mut self) -> ReadOutcome<T> {
        self.failed = None;
        self.backoff = Backoff::endless();
        if self.emitted == Some(None) {
            return ReadOutcome::Unchanged;
        }
        self.emitted = Some(None);
        ReadOutcome::Emit(Ok(None))
    }

    /// Emits an error if its kind is new, otherwise pauses before the next attempt.
    async fn failed(&mut self, error: Error) -> ReadOutcome<T> {
        if self.failed.replace(error.kind()) != Some(error.kind()) {
            return ReadOutcome::Emit(Err(error.at(&self.path)));
        }
        self.pause().await
    }

    async fn pause(&mut self) -> ReadOutcome<T> {
        let pause = self.backoff.pause();
        tokio::select! {
            () = tokio::time::sleep(pause) => ReadOutcome::Unchanged,
            () = self.shared.closing.cancelled() => ReadOutcome::Closed,
        }
    }
}

/// Reads a node with a watch. If the node does not exist, the response is `None`, and the watch reports the
/// creation of the node.
///
/// # Errors
/// The cause if there is no answer. The inner error is the code with which the servers refuse a read.
///
/// # Cancel safety
/// Cancel safe.
pub(crate) async fn read_watched(
    generation: &SessionGeneration,
    full: &str,
    read: fn(String) -> Request,
) -> Result<Result<(Option<Response>, Option<Box<Watch>>), Code>, Cause> {
    let send = async |request| generation.session.submit(request, Lane::Call).await.answer();
    loop {
        let reply = send(read(full.to_owned())).await?;
        let missing = match reply.result {
            Ok(response) => return Ok(Ok((Some(response), reply.watch))),
            // Only a watch for its existence can be set on a missing node.
            Err(Code::NO_NODE) if reply.watch.is_none() => send(exists(full.to_owned())).await?,
            _ => reply,
        };
        match missing.result {
            Err(Code::NO_NODE) if missing.watch.is_some() => return Ok(Ok((None, missing.watch))),
            // The node was created in between.
            Ok(_) | Err(Code::NO_NODE) => {}
            Err(code) => return Ok(Err(code)),
        }
    }
}
