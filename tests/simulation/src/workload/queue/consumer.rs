use super::records::{Delivery, Put, Take};
use super::version::Version;
use super::workload::{QueueWorkload, Stock};
use crate::workload::ClientCtx;
use crate::workload::abandon::abandon_at;
use crate::workload::hold::WRITTEN;
use crate::workload::pace::Pace;
use docent::queue::AckError;
use docent::{CreateMode, Delivery as Held, Error, ErrorKind, Queue};
use docent_checker::Settlement;
use fastrand::Rng;
use futures_util::StreamExt;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Maximum number of items that are taken together.
const MOST: usize = 4;

/// Pause before the next check whether a queue is empty, or whether items are available.
const LOOK: Duration = Duration::from_millis(700);

/// Longer than items are kept for a call that is not polled.
const UNPOLLED: Duration = Duration::from_secs(4);

/// Longest work once nothing new begins.
const BRIEF: Duration = Duration::from_millis(60);

/// A consumer that takes items from a queue and works on them.
pub(super) struct Consumer<'a> {
    pub(super) work: &'a QueueWorkload,
    pub(super) ctx: &'a ClientCtx,
    pub(super) stock: &'a Stock,
    pub(super) queue: &'a Queue<u64>,
    /// All queues, into which items may be put.
    pub(super) queues: &'a [Queue<u64>],
    pub(super) pace: &'a Pace,
    pub(super) version: Version,
}

impl Consumer<'_> {
    fn begin(&self, waits: bool) -> Take<'_> {
        Take::begin(self.ctx, &self.stock.path, waits, self.version == Version::Newer)
    }

    /// Takes in one of the possible ways, and works on the received items. Breaks if the client is closed.
    pub(super) async fn consume(&self, rng: &mut Rng) -> ControlFlow<()> {
        let queue = self.queue;
        let take = |waits| self.begin(waits);
        let span = self.ctx.setting.span(rng);
        let one = |taken: Result<Option<Held<u64>>, Error>| taken.map(Vec::from_iter);
        let taken = match rng.u8(..20) {
            0..=2 => {
                let _take = take(false);
                Some(one(queue.try_take().await))
            }
            3..=5 => {
                let _take = take(true);
                // The claim often arrives later than this.
                let limit = if rng.bool() { self.ctx.setting.latency.mul_f64(4.0 * rng.f64()) } else { span };
                Some(one(queue.take_timeout(limit).await))
            }
            6..=8 => {
                let _take = take(true);
                self.or_empty(queue.take_batch(rng.usize(1..=MOST))).await
            }
            9 => {
                let _take = take(true);
                let taken = self.or_empty(abandon_at(rng.u32(1..12), queue.take())).await.flatten();
                taken.map(|taken| one(taken.map(Some)))
            }
            10 => {
                let _take = take(true);
                let limit = if rng.bool() { self.ctx.setting.latency.mul_f64(6.0 * rng.f64()) } else { span };
                timeout(limit, queue.take()).await.ok().map(|taken| one(taken.map(Some)))
            }
            11 => {
                let take = take(false);
                let mut taking = pin!(queue.take());
                let taken = self.or_empty(abandon_at(rng.u32(1..12), taking.as_mut())).await.flatten();
                if taken.is_none() {
                    take.unpolled();
                    tokio::select! {
                        () = sleep(UNPOLLED + span) => {}
                        () = self.ctx.stop.cancelled() => {}
                    }
                }
                taken.map(|taken| one(taken.map(Some)))
            }
            12..=14 => return self.stream(rng).await,
            _ => {
                let _take = take(true);
                self.or_empty(queue.take()).await.map(|taken| one(taken.map(Some)))
            }
        };
        match taken {
            Some(Ok(batch)) => self.work_on(batch, rng).await,
            Some(Err(error)) => {
                self.ctx.failed(&error)?;
                sleep(LOOK).await;
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    /// Takes until the queue is empty. Breaks if the client is closed.
    pub(super) async fn drain(&self, rng: &mut Rng) -> ControlFlow<()> {
        loop {
            let take = self.begin(true);
            let taken = self.or_empty(self.queue.take()).await;
            drop(take);
            match taken {
                Some(Ok(delivery)) => self.work_on(vec![delivery], rng).await,
                // The session remains too short for claims.
                Some(Err(error)) if error.kind() == ErrorKind::ShortLease => return ControlFlow::Continue(()),
                Some(Err(error)) => {
                    self.ctx.failed(&error)?;
                    sleep(LOOK).await;
                }
                None => return ControlFlow::Continue(()),
            }
        }
    }

    /// Takes some items of a stream, and then drops the stream with its claims.
    async fn stream(&self, rng: &mut Rng) -> ControlFlow<()> {
        let _take = self.begin(false);
        let mut deliveries = self.queue.deliveries();
        for _ in 0..rng.usize(1..10) {
            let waiting = self.begin(true);
            let next = self.or_empty(deliveries.next()).await;
            drop(waiting);
            match next {
                Some(Some(Ok(delivery))) => self.work_on(vec![delivery], rng).await,
                Some(Some(Err(error))) => {
                    self.ctx.failed(&error)?;
                    sleep(LOOK).await;
                }
                // The client is closed.
                Some(None) => return ControlFlow::Break(()),
                None => break,
            }
        }
        ControlFlow::Continue(())
    }

    /// Waits for `future`. Once nothing new begins, stops waiting and returns `None` when the queue is empty.
    async fn or_empty<F: Future>(&self, future: F) -> Option<F::Output> {
        let empty = async {
            self.ctx.stop.cancelled().await;
            loop {
                let is_empty = async {
                    self.ctx.client.sync(&self.stock.path).await?;
                    self.queue.is_empty().await
                };
                if let Ok(true) = is_empty.await {
                    break;
                }
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            output = future => Some(output),
            () = empty => None,
        }
    }

    /// Works on items one after the other, and settles each of them, or acknowledges all of them together.
    async fn work_on(&self, batch: Vec<Held<u64>>, rng: &mut Rng) {
        let begin = |held: Held<u64>| (Delivery::begin(self.ctx, self.stock, &held), held);
        let mut batch: Vec<_> = batch.into_iter().map(begin).collect();
        let together = batch.len() > 1
            && rng.bool()
            && batch.iter().all(|(_, held)| !self.stock.is_poison(*held.item()));
        if !together {
            for (record, held) in batch {
                self.work(&record, &held, rng).await;
                self.settle(&record, held, rng).await;
            }
            return;
        }
        for (record, held) in &mut batch {
            self.work(record, held, rng).await;
        }
        let (records, batch): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        records.iter().for_each(|record| record.settling(Settlement::Ack));
        let acked = outcome(&Held::ack_all(batch).await);
        records.iter().for_each(|record| record.settled(acked));
    }

    /// Works on one item for a while, sometimes for longer than its claim is held.
    async fn work(&self, record: &Delivery<'_>, held: &Held<u64>, rng: &mut Rng) {
        let span = self.pace.span(self.ctx, rng);
        // Once nothing new begins, everything must come to its end.
        let span = if self.ctx.stop.is_cancelled() { span.min(BRIEF) } else { span };
        if rng.u8(..4) == 0 {
            let _ = held.run(sleep(span)).await;
            return record.held_checked(held);
        }
        let writes = rng.u8(..4) == 0;
        for _ in 0..8 {
            let until = Instant::now() + span / 8;
            sleep(span / 8).await;
            record.held_checked(held);
            // A process that was paused continues with what it was about to do.
            let stood_still = until.elapsed() > self.ctx.setting.latency;
            if stood_still || writes && rng.u8(..4) == 0 {
                self.write(record, held, rng).await;
            }
        }
    }

    /// Creates a node in a transaction of the delivery.
    async fn write(&self, record: &Delivery<'_>, held: &Held<u64>, rng: &mut Rng) {
        let node = format!("{WRITTEN}/{:016x}", rng.u64(..));
        let transaction = held.transaction().create(&node, "", CreateMode::Persistent);
        let applied = match rng.bool() {
            true => transaction.commit().await.map(drop),
            false => transaction.commit_exactly().await.map(drop),
        };
        record.wrote(
            node,
            match applied {
                Ok(()) => Some(true),
                Err(error) if error.may_have_applied() => None,
                Err(_) => Some(false),
            },
        );
    }

    /// Ends the work on an item, mostly by acknowledging it.
    async fn settle(&self, record: &Delivery<'_>, held: Held<u64>, rng: &mut Rng) {
        let calm = self.ctx.stop.is_cancelled();
        let way = rng.u8(..20);
        if self.stock.is_poison(*held.item()) || !calm && way < 5 {
            return self.give_back(record, held, rng).await;
        }
        match way {
            5 if !calm => {
                record.settling(Settlement::Reject);
                record.settled(self.try_for(rng, held.reject("it looks wrong")).await);
            }
            6 if !calm => {
                record.settling(Settlement::PutBack);
                let place = self.stock.place(rng);
                record.settled(self.try_for(rng, held.put_back(place)).await);
            }
            7 | 8 if !calm && !self.work.is_ahead() => {
                let (stock, queue) = self.work.any(self.queues, rng);
                let item = self.work.item(self.version);
                let put = Put::begin(self.ctx, &stock.path, &[item]);
                record.settling(Settlement::Ack);
                let done = self.try_for(rng, held.ack_and_put(queue, &item)).await;
                put.ended(done);
                record.settled(done);
            }
            way => {
                record.settling(Settlement::Ack);
                let ack = async {
                    match way % 2 {
                        0 => held.ack().await,
                        _ => held.into_item().await.map(drop),
                    }
                };
                record.settled(self.try_for(rng, ack).await);
            }
        }
    }

    /// Returns whether the call succeeded, if that is known. Now and then the future is dropped.
    async fn try_for(
        &self,
        rng: &mut Rng,
        future: impl Future<Output = Result<(), AckError>>,
    ) -> Option<bool> {
        let done = match rng.u8(..8) {
            _ if self.ctx.stop.is_cancelled() => Some(future.await),
            0 => abandon_at(rng.u32(1..8), future).await,
            1 => timeout(self.ctx.setting.span(rng), future).await.ok(),
            _ => Some(future.await),
        };
        done.and_then(|done| outcome(&done))
    }

    async fn give_back(&self, record: &Delivery<'_>, held: Held<u64>, rng: &mut Rng) {
        match rng.u8(..6) {
            0 => {
                let delay = self.ctx.setting.span(rng);
                record.given_back(delay);
                let _ = held.nack_after(delay);
            }
            1 => {
                record.given_back(record.delay);
                drop(held);
            }
            2 | 3 => {
                record.given_back(record.delay);
                let _ = held.nack();
            }
            _ => {
                record.given_back(Duration::ZERO);
                let _ = held.nack_now().await;
            }
        }
    }
}

/// Returns whether the call succeeded, if that is known.
fn outcome(done: &Result<(), AckError>) -> Option<bool> {
    match done {
        Ok(()) => Some(true),
        Err(AckError::Core(error)) if error.may_have_applied() => None,
        Err(_) => Some(false),
    }
}
