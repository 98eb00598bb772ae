use super::Queue;
use crate::delivery::Delivery;
use docent_core::{Error, ErrorKind};
use futures_core::Stream;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The items of a queue as they are handed out. See [`Queue::deliveries`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Deliveries<T>(BoxStream<'static, Result<Delivery<T>, Error>>);

impl<T: Send + 'static> Deliveries<T> {
    pub(super) fn new(queue: Queue<T>, prefetch: usize) -> Self {
        let state = (queue, VecDeque::new());
        let deliveries = stream::unfold(state, move |(queue, mut ready)| async move {
            loop {
                match ready.pop_front() {
                    // A delivery that was lost while it waited here is somebody else's.
                    Some(delivery) if !Delivery::is_held(&delivery) => {}
                    Some(delivery) => return Some((Ok(delivery), (queue, ready))),
                    None => match queue.take_batch(prefetch).await {
                        Ok(batch) => ready.extend(batch),
                        Err(error) if error.kind() == ErrorKind::Closed => return None,
                        Err(error) => return Some((Err(error), (queue, ready))),
                    },
                }
            }
        });
        Self(deliveries.fuse().boxed())
    }
}

impl<T> Stream for Deliveries<T> {
    type Item = Result<Delivery<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl<T> fmt::Debug for Deliveries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deliveries").finish_non_exhaustive()
    }
}
