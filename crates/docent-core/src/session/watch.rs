use super::{SessionEnd, Withdraw};
use docent_proto::{EventKind, Request, Watches};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

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

/// A persistent watch on a node and everything below it. The session re-creates it on each new link; changes
/// made while there was no link are not reported. Dropping the value removes the watch.
#[derive(Debug)]
pub(crate) struct PersistentWatch {
    pub(super) signals: mpsc::UnboundedReceiver<PersistentSignal>,
    pub(super) registration: Registration,
}

/// Notification from a persistent watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PersistentSignal {
    /// A node at or below the watched node was created or deleted, or its data was set.
    Event(EventKind, Arc<str>),
    /// The server of the link does not support persistent watches. No further notifications follow.
    Withdrawn,
    Ended(SessionEnd),
}

impl PersistentWatch {
    /// Returns the next notification, in the server's order, or `None` after the last. An event that arrived
    /// before the reply to a request is available before that reply. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<PersistentSignal> {
        self.signals.recv().await
    }

    /// Returns the next notification if one is available now.
    pub(crate) fn take(&mut self) -> Option<PersistentSignal> {
        self.signals.try_recv().ok()
    }
}

impl Drop for PersistentWatch {
    fn drop(&mut self) {
        let Registration { id, path, kind, session } = &self.registration;
        session.unregister(*id, path, *kind);
    }
}

// Requests that set several watches, split into sizes that servers accept.

/// Maximum bytes of paths in one request that sets watches. Servers accept 1 MiB; the Java client also uses
/// this limit.
pub(super) const CHUNK: usize = 128 * 1024;

/// Splits `watches`, whose paths have `len` bytes each, into lists for requests of up to `request_limit`
/// bytes.
pub(super) fn split<T>(
    watches: impl IntoIterator<Item = T>,
    len: impl Fn(&T) -> usize,
    request_limit: usize,
) -> Vec<Vec<T>> {
    /// Bytes of the request apart from its paths.
    const FIELDS: usize = 64;
    /// Bytes of a path's length field.
    const LENGTH: usize = 4;
    let limit = CHUNK.min(request_limit).saturating_sub(FIELDS);
    let (mut lists, mut size) = (Vec::<Vec<T>>::new(), 0);
    for watch in watches {
        size += LENGTH + len(&watch);
        match lists.last_mut().filter(|_| size <= limit) {
            Some(list) => list.push(watch),
            None => {
                size = LENGTH + len(&watch);
                lists.push(vec![watch]);
            }
        }
    }
    lists
}

/// Returns requests that set watches on the data of `paths`, as of the transaction `since`, which the session
/// has seen. Their replies hold the watches, in the order of the paths. `request_limit` is the largest
/// request in bytes that the servers accept.
pub(crate) fn watch_requests(
    since: i64,
    paths: impl IntoIterator<Item = String>,
    request_limit: usize,
) -> Vec<Request> {
    let lists = split(paths, String::len, request_limit).into_iter();
    let request = |data| Request::SetWatches(Watches { relative_zxid: since, data, ..Watches::default() });
    lists.map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_paths_take_several_requests_in_their_order() {
        let paths: Vec<_> = (0..3_000).map(|n| format!("/{n:0>100}")).collect();
        for limit in [1024 * 1024, 64 * 1024] {
            let requests = watch_requests(7, paths.clone(), limit);
            let mut all = Vec::new();
            for request in &requests {
                assert!(request.payload_len() <= CHUNK.min(limit));
                let Request::SetWatches(watches) = request else { panic!("{request:?}") };
                assert_eq!(watches.relative_zxid, 7);
                all.extend(watches.data.iter().cloned());
            }
            assert!(requests.len() > 1);
            assert_eq!(all, paths);
        }
        assert!(watch_requests(7, Vec::new(), 1024).is_empty());
    }
}
