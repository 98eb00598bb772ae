use futures_core::Stream;
use futures_util::stream::{BoxStream, StreamExt};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

/// Stream that is `Sync` although the one inside is only `Send`, so that a handle with one in it fits into
/// shared state. Polled again after its end it says again that it ended.
pub struct SyncStream<T>(Mutex<BoxStream<'static, T>>);

impl<T> SyncStream<T> {
    /// Puts a stream inside.
    pub fn new(stream: impl Stream<Item = T> + Send + 'static) -> Self {
        Self(Mutex::new(stream.fuse().boxed()))
    }
}

impl<T> Stream for SyncStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // Polled by `&mut` alone: the lock is never taken, and only says so to the compiler.
        let stream = self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner);
        stream.as_mut().poll_next(cx)
    }
}
