use super::consumer::Consumer;
use super::producer;
use crate::theme::Theme;
use crate::workload::pace::Pace;
use crate::workload::{ClientCtx, Workload};
use docent::queue::{Codec, Json, PutOptions, QueueBuilder};
use docent::{Client, Queue};
use docent_checker::{DeadReason, Queued, QueuedAs};
use docent_server::{Transaction, TransactionKind};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::sleep;

/// Where the queues are.
const QUEUES: &str = "/queues";

/// Bytes of a frame before an item.
const FRAME: usize = 8;

/// Items that are put at once, and then in each second on average: many, or so few that consumers mostly
/// wait. Where consumers lose the items they take, a queue is never full, and a run would become longer and
/// longer.
const PUTS: [(u64, u64); 2] = [(100, 30), (3, 1)];

/// Longest delay of an item, in milliseconds.
const DELAY: u64 = 3_000;

/// Before it is looked again whether more may be put.
const AHEAD: Duration = Duration::from_millis(500);

/// Clients that put items into a few queues, some with delays and priorities, take them in every way there
/// is, work on them for too long or not at all, acknowledge and reject them, put them elsewhere and give them
/// back.
#[derive(Debug)]
pub(in crate::workload) struct QueueWorkload {
    stocks: Vec<Stock>,
    pace: Pace,
    /// How many tasks in ten are producers.
    producers: u8,
    /// Items that are put at once, and in each second.
    puts: (u64, u64),
    /// The next item's number: no two puts have the same.
    next: Cell<u64>,
    /// Theme of the faults, where it is not drawn.
    theme: Option<Theme>,
}

/// One queue.
#[derive(Debug)]
pub(super) struct Stock {
    pub(super) path: String,
    capacity: usize,
    max_deliveries: u32,
    prefetch: usize,
    /// Whether some items are never acknowledged.
    poison: bool,
    /// Whether some items cannot be decoded.
    pub(super) corrupt: bool,
    /// For how long these are left to others.
    undecodable_after: Duration,
    /// Shortest and longest delay of items that are given back.
    redelivery: (Duration, Duration),
    /// Whether some items have a delay or a priority.
    places: bool,
}

impl Stock {
    fn draw(number: usize, rng: &mut Rng) -> Self {
        Self {
            path: format!("{QUEUES}/q{number}"),
            capacity: [3, 10, 40][rng.usize(..3)],
            max_deliveries: rng.u32(1..=6),
            prefetch: rng.usize(1..=5),
            poison: rng.bool(),
            corrupt: rng.u8(..3) == 0,
            undecodable_after: millis([0, 300, 1_500][rng.usize(..3)]),
            redelivery: [(0, 0), (20, 160), (200, 2_000)].map(|(one, other)| (millis(one), millis(other)))
                [rng.usize(..3)],
            places: rng.bool(),
        }
    }

    /// Where an item is put: mostly at the end, at once.
    pub(super) fn place(&self, rng: &mut Rng) -> PutOptions {
        let place = PutOptions::new();
        if !self.places || rng.bool() {
            return place;
        }
        let place = if rng.bool() { place.priority(rng.i32(-2..=2)) } else { place };
        if rng.u8(..3) == 0 { place.delay(millis(rng.u64(..DELAY))) } else { place }
    }

    /// Delay of an item that is given back after so many hand-outs.
    pub(super) fn delay(&self, deliveries: Option<u32>) -> Duration {
        let (shortest, longest) = self.redelivery;
        let doublings = deliveries.unwrap_or(1).saturating_sub(1).min(16);
        shortest.saturating_mul(1 << doublings).min(longest)
    }

    pub(super) fn settings<T: 'static>(&self, client: &Client, codec: impl Codec<T>) -> QueueBuilder<T> {
        // Items that are put faster than they are taken would not be done in time.
        Queue::builder_with(client, &self.path, codec)
            .max_deliveries(self.max_deliveries)
            .prefetch(self.prefetch)
            .capacity(self.capacity)
            .undecodable_after(self.undecodable_after)
            .redelivery_delay(self.redelivery.0, self.redelivery.1)
    }

    /// True for an item that makes all who work on it fail.
    pub(super) fn is_poison(&self, item: u64) -> bool {
        self.poison && item.is_multiple_of(8)
    }

    fn queued(&self, transaction: &Transaction) -> Option<Queued> {
        if !matches!(transaction.kind, TransactionKind::Created) {
            return None;
        }
        let below = transaction.path.strip_prefix(&self.path)?;
        let data = transaction.data.as_deref()?;
        let (framed, kind) = if below.starts_with("/items/item-") && !below.ends_with("/count") {
            let decodable = !data.get(FRAME..)?.starts_with(b"corrupt");
            (data, QueuedAs::Item { decodable })
        } else if below.starts_with("/dead/letter-") {
            let end = data.iter().position(|byte| *byte == b'\n')?;
            let head = std::str::from_utf8(&data[..end]).ok()?;
            (&data[end + 1..], QueuedAs::DeadLetter { reason: reason(head)? })
        } else {
            return None;
        };
        let text = std::str::from_utf8(framed.get(FRAME..)?).ok()?;
        let item = text.trim_start_matches("corrupt ").parse().ok()?;
        let node = transaction.path.clone();
        Some(Queued { queue: self.path.clone(), node, zxid: transaction.zxid, item, kind })
    }
}

/// Reason in the header of a dead letter.
fn reason(head: &str) -> Option<DeadReason> {
    let reasons = [
        ("\"too-many-deliveries\"", DeadReason::TooManyDeliveries),
        ("\"undecodable\"", DeadReason::Undecodable),
        ("\"rejected\"", DeadReason::Rejected),
    ];
    reasons.into_iter().find(|(name, _)| head.contains(name)).map(|(_, reason)| reason)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl QueueWorkload {
    pub(in crate::workload) fn draw(rng: &mut Rng) -> Self {
        Self {
            stocks: (0..rng.usize(1..=2)).map(|number| Stock::draw(number, rng)).collect(),
            pace: Pace::draw(rng),
            producers: rng.u8(2..=7),
            next: Cell::new(1),
            puts: PUTS[rng.usize(..PUTS.len())],
            theme: None,
        }
    }

    /// One queue with so few items that consumers mostly wait, and one of them dies now and then.
    pub(in crate::workload) fn lull(rng: &mut Rng) -> Self {
        let drawn = Self::draw(rng);
        let stocks = drawn.stocks.into_iter().take(1).collect();
        Self { stocks, producers: 3, puts: PUTS[1], theme: Some(Theme::Deaths), ..drawn }
    }

    /// A new item.
    pub(super) fn item(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// One of the queues.
    pub(super) fn any<'a>(&'a self, queues: &'a [Queue<u64>], rng: &mut Rng) -> (&'a Stock, &'a Queue<u64>) {
        let number = rng.usize(..queues.len());
        (&self.stocks[number], &queues[number])
    }

    /// True when enough was put for now.
    pub(super) fn is_ahead(&self) -> bool {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default();
        let (at_once, a_second) = self.puts;
        self.next.get() > at_once + a_second * elapsed.as_secs()
    }

    /// Builds each queue once, as clones share their knowledge of it.
    fn build(&self, client: &Client) -> Option<Vec<Queue<u64>>> {
        self.stocks.iter().map(|stock| stock.settings(client, Json::new()).build().ok()).collect()
    }

    /// One put or one take. Breaks when the client is closed.
    async fn attempt(
        &self,
        ctx: &ClientCtx,
        queues: &[Queue<u64>],
        produces: bool,
        rng: &mut Rng,
    ) -> ControlFlow<()> {
        let (stock, queue) = self.any(queues, rng);
        if produces && self.is_ahead() {
            sleep(AHEAD).await;
            return ControlFlow::Continue(());
        }
        if produces {
            return producer::put(self, ctx, stock, queue, rng).await;
        }
        Consumer { work: self, ctx, stock, queue, queues, pace: &self.pace }.consume(rng).await
    }

    /// Once nothing new is begun: empties the queues.
    async fn drain(&self, ctx: &ClientCtx, queues: &[Queue<u64>], rng: &mut Rng) {
        for (stock, queue) in self.stocks.iter().zip(queues) {
            let consumer = Consumer { work: self, ctx, stock, queue, queues, pace: &self.pace };
            if consumer.drain(rng).await.is_break() {
                return;
            }
        }
    }
}

impl Workload for QueueWorkload {
    fn theme(&self) -> Option<Theme> {
        self.theme
    }

    fn lasts(&self) -> bool {
        self.theme.is_some()
    }

    fn nodes(&self) -> Vec<String> {
        vec![QUEUES.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        let folders = |stock: &Stock| ["idle", "claims"].map(|folder| format!("{}/{folder}", stock.path));
        self.stocks.iter().flat_map(folders).collect()
    }

    fn queues(&self) -> BTreeMap<String, u32> {
        self.stocks.iter().map(|stock| (stock.path.clone(), stock.max_deliveries)).collect()
    }

    fn queued(&self, journal: &[Transaction]) -> Vec<Queued> {
        let queued = |transaction| self.stocks.iter().find_map(|stock| stock.queued(transaction));
        journal.iter().filter_map(queued).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let Some(shared) = self.build(&ctx.client) else { return };
            let tasks = (0..self.pace.tasks(rng)).map(|_| {
                let (mut rng, ctx, shared) = (rng.fork(), &ctx, &shared);
                async move {
                    let produces = rng.u8(..10) < self.producers;
                    // Some share their knowledge of the queues with others of their client.
                    let own = if rng.bool() { self.build(&ctx.client) } else { None };
                    let queues = own.as_ref().unwrap_or(shared);
                    let attempt = async |rng: &mut Rng| self.attempt(ctx, queues, produces, rng).await;
                    self.pace.task(ctx, rng.fork(), attempt).await;
                }
            });
            let tasks: Vec<_> = tasks.collect();
            join_all(tasks).await;
            if ctx.stop.is_cancelled() {
                self.drain(&ctx, &shared, rng).await;
            }
        }
        .boxed_local()
    }
}
