//! The loop of a consumer: take, work, acknowledge, retry.

use super::{Deliveries, Delivery, Queue};
use crate::error::AckError;
use docent_core::recipe::{Stage, full_error, full_path, stage_reached};
use docent_core::{Client, Error, ErrorKind};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Limit of an acknowledgement, which in fact ends with the lease of its delivery.
const WHILE_HELD: Duration = Duration::from_secs(24 * 60 * 60);

/// Future that takes items and works on them. Created by [`Queue::consume`]; does nothing until it is
/// awaited.
///
/// # On drop
/// The work in progress is dropped. Its items return to the queue after a delay, as with
/// [`Delivery::nack`](crate::Delivery::nack), in the background. An item whose acknowledgement was in
/// progress may have been acknowledged.
#[must_use = "does nothing unless awaited"]
pub struct Consume<F> {
    consuming: Pin<Box<F>>,
    control: Arc<Control>,
}

/// Settings of a [`Consume`], which its future reads.
pub(super) struct Control {
    stop: CancellationToken,
    concurrency: AtomicUsize,
}

impl<F: Future<Output = Result<(), Error>>> Consume<F> {
    pub(super) fn new(consuming: impl FnOnce(Arc<Control>) -> F) -> Self {
        let control = Arc::new(Control { stop: CancellationToken::new(), concurrency: AtomicUsize::new(1) });
        Self { consuming: Box::pin(consuming(Arc::clone(&control))), control }
    }

    /// Sets the maximum number of items that are worked on at a time, 1 by default. A limit of 0 counts as 1.
    ///
    /// All work runs concurrently in the task that awaits this future, not in parallel: work that blocks the
    /// thread blocks the other items, too. To use several threads, spawn a task in the work and await it. In
    /// `ordered` mode there is only one item at a time.
    pub fn concurrency(self, limit: usize) -> Self {
        self.control.concurrency.store(limit.max(1), Ordering::Relaxed);
        self
    }

    /// Consumes until `shutdown` completes. Then takes no more items, finishes and acknowledges the items in
    /// work, and returns `Ok`. Returns immediately if no item is in work, also in an outage. If the servers
    /// are unreachable, an acknowledgement is retried until the lease of its item ends.
    ///
    /// # Errors
    /// As [`Queue::consume`].
    ///
    /// # Cancel safety
    /// This method is cancel safe: see *On drop*.
    pub async fn until(mut self, shutdown: impl Future) -> Result<(), Error> {
        tokio::select! {
            biased;
            _ = shutdown => self.control.stop.cancel(),
            done = &mut self.consuming => return done,
        }
        self.consuming.await
    }
}

impl<F: Future> Future for Consume<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.consuming.as_mut().poll(cx)
    }
}

impl<F> fmt::Debug for Consume<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consume").finish_non_exhaustive()
    }
}

/// Takes items and works on them, until it is stopped or an error cannot be mended by repeating. The items in
/// work are finished in any case.
pub(super) async fn consume<T, W, E>(queue: Queue<T>, work: W, control: Arc<Control>) -> Result<(), Error>
where
    T: Send + 'static,
    W: AsyncFn(&T) -> Result<(), E>,
    E: fmt::Display,
{
    // Owned by each future, which could otherwise not be sent to another thread: `Send` would have to hold
    // for every lifetime of a borrow.
    let (client, work) = (queue.store.client.clone(), Arc::new(work));
    if stage_reached(&client, Stage::Drain).now_or_never().is_some() {
        return Err(Error::closed("take", queue.path()));
    }
    let concurrency = control.concurrency.load(Ordering::Relaxed);
    let mut deliveries = Some(queue.deliveries());
    let mut in_work = FuturesUnordered::new();
    let mut end = None;
    while end.is_none() || !in_work.is_empty() {
        tokio::select! {
            biased;
            () = stopped(&client, &control.stop), if end.is_none() => end = Some(Ok(())),
            Some(done) = in_work.next(), if !in_work.is_empty() => {
                // The first error counts, because it ended the consumer.
                if let Err(error) = done && !matches!(end, Some(Err(_))) {
                    end = Some(Err(error));
                }
            }
            next = next(&queue, &mut deliveries), if deliveries.is_some() && in_work.len() < concurrency => match next {
                Ok(delivery) => in_work.push(process(queue.clone(), delivery, Arc::clone(&work))),
                Err(error) => end = Some(Err(error)),
            },
        }
        if end.is_some() {
            // Withdraws the take that waits, so that no item is offered to this consumer any more.
            deliveries = None;
        }
    }
    match end {
        // A client that shuts down closes while the last items are finished.
        Some(Err(error)) if error.kind() == ErrorKind::Closed && is_stopped(&client, &control.stop) => Ok(()),
        end => end.unwrap_or(Ok(())),
    }
}

/// Resolves when the consumer is stopped, by its own `stop` or by the shutdown of its client.
async fn stopped(client: &Client, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = stage_reached(client, Stage::Drain) => {}
    }
}

fn is_stopped(client: &Client, stop: &CancellationToken) -> bool {
    stopped(client, stop).now_or_never().is_some()
}

/// Waits for the next item. Transient errors are waited out. Cancel safe.
async fn next<T: Send + 'static>(
    queue: &Queue<T>,
    deliveries: &mut Option<Deliveries<T>>,
) -> Result<Delivery<T>, Error> {
    let Some(deliveries) = deliveries else { return Err(Error::closed("take", queue.path())) };
    loop {
        match deliveries.next().await {
            Some(Ok(delivery)) => return Ok(delivery),
            Some(Err(error)) if is_transient(&error) => {
                let client = queue.store.client.label();
                // Event: A consumer could not take the next item; the field `error` has the reason. It
                // retries after a pause of up to 5 s.
                // Action: Read the error. If the servers are unreachable, no action is needed here.
                tracing::warn!(target: "docent::queue", %client, path = %full_path(&queue.store.client, queue.path()), error = %full_error(&queue.store.client, &error), "cannot take the next item; retrying");
            }
            Some(Err(error)) => return Err(error),
            None => return Err(Error::closed("take", queue.path())),
        }
    }
}

/// Returns whether the consumer retries after this error. A client that is bound to a session which has ended
/// never succeeds again.
fn is_transient(error: &Error) -> bool {
    error.kind() != ErrorKind::SessionChanged && error.is_retryable()
}

/// Works on one item and ends its delivery. Returns an error only if the consumer cannot continue.
async fn process<T, W, E>(queue: Queue<T>, delivery: Delivery<T>, work: Arc<W>) -> Result<(), Error>
where
    T: 'static,
    W: AsyncFn(&T) -> Result<(), E>,
    E: fmt::Display,
{
    let span = delivery.span().clone();
    let processed = async {
        match delivery.run(work(delivery.item())).await {
            Ok(Ok(())) => acknowledge(&queue, delivery).await,
            Ok(Err(error)) => {
                give_back(&queue, delivery, &error);
                Ok(())
            }
            Err(lost) => {
                let (client, item) = (queue.store.client.label(), delivery.name());
                // Event: A consumer lost an item while it worked on it; the field `lost` has the reason. The
                // work was stopped, and another consumer gets the item.
                // Action: Check the connection of this client to the servers, and whether its process was
                // paused, if the event repeats.
                tracing::warn!(target: "docent::queue", %client, path = %full_path(&queue.store.client, queue.path()), item, %lost, "item lost during the work; it will be delivered again");
                Ok(())
            }
        }
    };
    processed.instrument(span).await
}

/// Acknowledges the item, retrying in an outage for as long as its claim is held.
async fn acknowledge<T: 'static>(queue: &Queue<T>, delivery: Delivery<T>) -> Result<(), Error> {
    let (client, name) = (&queue.store.client, delivery.name().to_owned());
    // The write is exact, so it is repeated until its outcome is known or the claim is lost.
    let transaction = client.with_operation_timeout(WHILE_HELD).transaction();
    let Err(error) = delivery.ack_with(transaction).await else { return Ok(()) };
    match error {
        AckError::Core(error) if is_permanent(&error) => Err(error),
        error => {
            let (client, item) = (client.label(), name);
            // Event: The work on an item completed, but its acknowledgement failed; the field `error` has the
            // reason, for example an outage that was longer than the lease. The item is delivered again,
            // unless the acknowledgement was applied.
            // Action: Check the connection to the servers. The work must tolerate that an item is delivered
            // more than once.
            tracing::warn!(target: "docent::queue", %client, path = %full_path(&queue.store.client, queue.path()), item, error = %full_error(&queue.store.client, &error.into()), "failed to acknowledge the item; it may be delivered again");
            Ok(())
        }
    }
}

/// Returns whether repeating would not help: the next acknowledgement would fail for the same reason.
fn is_permanent(error: &Error) -> bool {
    !error.is_retryable() && !error.may_have_applied()
}

fn give_back<T: 'static>(queue: &Queue<T>, delivery: Delivery<T>, error: &impl fmt::Display) {
    let (client, item) = (queue.store.client.label(), delivery.name());
    // Event: The work on an item returned an error. The item is given back and delivered again after a delay,
    // until it has used up its deliveries.
    // Action: Read the error, which is that of the application.
    tracing::warn!(target: "docent::queue", %client, path = %full_path(&queue.store.client, queue.path()), item, deliveries = delivery.deliveries(), %error, "the work on the item failed; giving it back");
    // A delivery that was lost meanwhile has returned already.
    let _ = delivery.nack();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send<F: Send>(future: F) -> F {
        future
    }

    #[expect(dead_code, reason = "compiling it is the test")]
    fn a_consumer_can_be_spawned(jobs: &Queue<u64>, stop: CancellationToken) {
        let jobs = jobs.clone();
        drop(is_send(async move {
            let work = async move |item: &u64| {
                stop.cancelled().await;
                if *item == 0 { Err(Error::invalid_input("work", "zero")) } else { Ok(()) }
            };
            jobs.consume(work).concurrency(2).await
        }));
    }
}
