use super::attachment::{Attachment, SessionChange};
use crate::client::Client;
use crate::error::Error;
use crate::operation::Shared;
use crate::session::{PersistentSignal, PersistentWatch};
use docent_proto::EventKind;
use std::fmt;
use std::future::pending;
use std::sync::Arc;

/// Changes of a node and of everything below it, reported by one persistent recursive watch of the session.
///
/// The watch is in place before each [`Attached`](SubtreeEvent::Attached) with `is_watched` is returned: a
/// node that is read afterwards shows a change, or an event reports the change later. On one link, events
/// arrive in the order of their transactions, and before any reply that shows the change. The stream does not
/// keep its client open.
///
/// # On drop
/// The watch at the server is removed.
pub struct SubtreeEvents {
    shared: Arc<Shared>,
    full: String,
    attachment: Attachment,
    /// Change of the attachment that [`next`](Self::next) has not returned yet.
    change: Option<SessionChange>,
    watch: Option<PersistentWatch>,
}

/// Event of a [`SubtreeEvents`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubtreeEvent {
    /// The client has a new link or session: anything may have changed meanwhile. Later changes are reported
    /// if `is_watched` is true. Otherwise, the server does not support persistent watches.
    Attached {
        /// False if changes are not reported.
        is_watched: bool,
    },
    /// The link was lost: changes are not reported until the next `Attached`.
    Detached,
    /// A node was created or deleted.
    Set(String),
    /// The data of a node was set.
    Data(String),
}

impl SubtreeEvents {
    /// Creates the stream of changes at and below `path`. The watch is requested by [`next`](Self::next).
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        let shared = Arc::clone(client.shared());
        let full = shared.namespace.full("watch", path)?;
        Ok(Self { attachment: Attachment::new(&shared), shared, full, change: None, watch: None })
    }

    /// Waits for the next event; returns `None` once the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn next(&mut self) -> Option<SubtreeEvent> {
        loop {
            let signal = async {
                match &mut self.watch {
                    Some(watch) => watch.next().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.shared.closing.cancelled() => return None,
                change = next_change(&mut self.change, &mut self.attachment) => {
                    self.change = None;
                    return Some(self.attachment_changed(change));
                }
                signal = signal => match signal {
                    Some(PersistentSignal::Event(kind, full)) => return Some(self.event(kind, &full)),
                    Some(PersistentSignal::Withdrawn) => {
                        self.watch = None;
                        return Some(SubtreeEvent::Attached { is_watched: false });
                    }
                    // The attachment reports the next session.
                    Some(PersistentSignal::Ended(_)) | None => self.watch = None,
                },
            }
        }
    }

    /// Waits for a change of link or session, which [`next`](Self::next) returns next.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn unsettled(&mut self) {
        self.change = Some(next_change(&mut self.change, &mut self.attachment).await);
    }

    /// Requests the watch, unless the session re-creates it on the new link.
    fn attachment_changed(&mut self, change: SessionChange) -> SubtreeEvent {
        if change.session {
            self.watch = None;
        }
        if !change.up {
            return SubtreeEvent::Detached;
        }
        if self.watch.is_none() {
            self.watch = self.attachment.generation.session.watch_below(&self.full);
        }
        SubtreeEvent::Attached { is_watched: self.watch.is_some() }
    }

    fn event(&self, kind: EventKind, full: &str) -> SubtreeEvent {
        let path = self.shared.namespace.relative(full);
        match kind {
            EventKind::Created | EventKind::Deleted => SubtreeEvent::Set(path),
            EventKind::DataChanged | EventKind::ChildrenChanged => SubtreeEvent::Data(path),
        }
    }
}

/// Waits for a change, unless one was kept.
async fn next_change(kept: &mut Option<SessionChange>, attachment: &mut Attachment) -> SessionChange {
    match *kept {
        Some(change) => change,
        None => attachment.changed().await,
    }
}

impl fmt::Debug for SubtreeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubtreeEvents").field("path", &self.full).finish_non_exhaustive()
    }
}
