use futures_core::Stream;
use futures_util::stream::{BoxStream, StreamExt};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

/// Stream that is `Sync` although the inner stream is only `Send`, so that a handle that contains it fits
/// into shared state. Fused: polled after its end, it returns `None` again.
pub struct SyncStream<T>(Mutex<BoxStream<'static, T>>);

impl<T> SyncStream<T> {
    /// Wraps a stream.
    pub fn new(stream: impl Stream<Item = T> + Send + 'static) -> Self {
        Self(Mutex::new(stream.fuse().boxed()))
    }
}

impl<T> Stream for SyncStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // The stream is polled only through `&mut`, so the lock is never taken. The mutex only makes the type
        // `Sync`.
        let stream = self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner);
        stream.as_mut().poll_next(cx)
    }
}
