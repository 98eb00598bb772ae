use super::{Delivery, Queue};
use docent_core::recipe::SyncStream;
use docent_core::{Error, ErrorKind};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Shortest pause after an error.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Stream of the items of a queue as they are handed out. See [`Queue::deliveries`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Deliveries<T>(SyncStream<Result<Delivery<T>, Error>>);

impl<T: Send + 'static> Deliveries<T> {
    pub(super) fn new(queue: Queue<T>) -> Self {
        let state = (queue, None::<Duration>);
        let deliveries = stream::unfold(state, |(queue, mut pause)| async move {
            if let Some(pause) = pause {
                queue.store.idle.pause(pause).await;
            }
            loop {
                let next = match queue.wait_for(1, queue.store.limits.prefetch - 1).await {
                    Ok(mut batch) => match batch.pop() {
                        // A delivery that was lost meanwhile belongs to another consumer.
                        Some(delivery) if !delivery.is_held() => continue,
                        Some(delivery) => {
                            pause = None;
                            Ok(delivery)
                        }
                        None => continue,
                    },
                    Err(error) if error.kind() == ErrorKind::Closed => return None,
                    Err(error) => {
                        pause = Some(pause.map_or(PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE)));
                        Err(error)
                    }
                };
                return Some((next, (queue, pause)));
            }
        });
        Self(SyncStream::new(deliveries))
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
