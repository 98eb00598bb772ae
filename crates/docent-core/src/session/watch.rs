use super::{SessionEnd, Withdraw};
use docent_proto::EventKind;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Table of the client that holds a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WatchKind {
    /// Data of a node that existed.
    Data,
    /// Existence of a node that did not exist.
    Exist,
    /// Children of a node.
    Child,
    /// A node and everything below it, persistently.
    Persistent,
}

/// A one-shot watch. Resolves when it fires or its session ends; dropping it removes it.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) fired: oneshot::Receiver<Fired>,
    /// `None` once the watch fired, and in sessions that detect a dropped receiver themselves.
    pub(crate) registration: Option<Registration>,
}

/// Entry of a watch in the tables of its session.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) id: u64,
    pub(crate) path: Arc<str>,
    pub(crate) kind: WatchKind,
    pub(crate) session: Arc<dyn Withdraw>,
}

/// End of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fired {
    Event(EventKind),
    Ended(SessionEnd),
}

impl Watch {
    /// Stops waiting for the watch but leaves it at the server, where the deletion of its node uses it up.
    pub(crate) fn leave(mut self) {
        self.registration = None;
    }
}

impl Future for Watch {
    type Output = Fired;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fired> {
        match Pin::new(&mut self.fired).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(fired) => {
                self.registration = None;
                Poll::Ready(fired.unwrap_or(Fired::Ended(SessionEnd::Abandoned)))
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(Registration { id, path, kind, session }) = self.registration.take() {
            session.unregister(id, &path, kind);
        }
    }
}
