use crate::error::{Error, ErrorKind};
use crate::telemetry::Instruments;
use std::sync::Arc;

/// State of a kept node as log and metrics tell it: each change once, however often the node is looked at.
///
/// # On drop
/// It counts as a kept node no more.
pub(super) struct Told {
    instruments: Arc<Instruments>,
    path: String,
    last: Last,
    /// True while it counts as present.
    counted: bool,
}

#[derive(PartialEq)]
enum Last {
    Nothing,
    /// It is present in the session of this generation.
    Present(u64),
    /// The node of another session is in its place.
    Waiting(i64),
    /// That node stays.
    Occupied(i64),
    Refused(ErrorKind),
}

impl Told {
    pub(super) fn new(instruments: &Arc<Instruments>, path: &str) -> Self {
        instruments.kept_wanted(1.0);
        Self {
            instruments: Arc::clone(instruments),
            path: path.to_owned(),
            last: Last::Nothing,
            counted: false,
        }
    }

    /// Counts it as present, or not.
    pub(super) fn count(&mut self, present: bool) {
        if std::mem::replace(&mut self.counted, present) != present {
            self.instruments.kept_present(if present { 1.0 } else { -1.0 });
        }
    }

    /// True when `news` were not told last.
    fn is_news(&mut self, news: Last) -> bool {
        let is_news = self.last != news;
        self.last = news;
        is_news
    }

    /// The node is present in the session of this generation.
    pub(super) fn present(&mut self, generation: u64) {
        let waited = matches!(self.last, Last::Waiting(_) | Last::Occupied(_));
        if !self.is_news(Last::Present(generation)) {
            return;
        }
        let (client, path) = (&**self.instruments.client(), &self.path);
        if waited {
            tracing::info!(
                client,
                path,
                generation,
                "the other session's node is gone: the own one is present"
            );
        } else {
            tracing::info!(client, path, generation, "node is present");
        }
    }

    /// The node is made again, since somebody deleted it.
    pub(super) fn deleted(&mut self) {
        if self.is_news(Last::Nothing) {
            let (client, path) = (&**self.instruments.client(), &self.path);
            tracing::warn!(client, path, "somebody deleted a kept node: it is made again");
        }
    }

    /// The node of an older session of this client was taken over.
    pub(super) fn taken_over(&self, owner: i64) {
        let (client, path, session_id) =
            (&**self.instruments.client(), &self.path, format_args!("{owner:#x}"));
        tracing::info!(client, path, %session_id, "taking over the node of this client's session before");
    }

    /// The node of another session stands in its place, and is waited for.
    pub(super) fn waiting(&mut self, owner: i64) {
        if self.last != Last::Occupied(owner) && self.is_news(Last::Waiting(owner)) {
            let (client, path, session_id) =
                (&**self.instruments.client(), &self.path, format_args!("{owner:#x}"));
            tracing::info!(client, path, %session_id, "waiting until the node of another session is gone");
        }
    }

    /// The node of another session has been there for longer than its session may take to end.
    pub(super) fn occupied(&mut self, owner: i64) {
        if self.is_news(Last::Occupied(owner)) {
            let (client, path, session_id) =
                (&**self.instruments.client(), &self.path, format_args!("{owner:#x}"));
            tracing::warn!(client, path, %session_id, "the node of another session stays: waiting on");
        }
    }

    /// The servers refuse to have the node.
    pub(super) fn refused(&mut self, error: &Error) {
        let (client, path) = (&**self.instruments.client(), &self.path);
        if self.last == Last::Refused(error.kind()) {
            tracing::debug!(client, path, %error, "a node still cannot be kept");
            return;
        }
        tracing::warn!(client, path, %error, "a node cannot be kept, trying on");
        self.last = Last::Refused(error.kind());
    }

    /// The node is gone, as it was wanted.
    pub(super) fn removed(&mut self) {
        self.last = Last::Nothing;
        tracing::info!(client = &**self.instruments.client(), path = self.path, "node is removed");
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.count(false);
        self.instruments.kept_wanted(-1.0);
    }
}
