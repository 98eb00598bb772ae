use super::consumer::Consumer;
use super::producer;
use super::version::{Version, Versioned, is_newer_kind};
use crate::theme::Theme;
use crate::workload::hold::WRITTEN;
use crate::workload::pace::Pace;
use crate::workload::{ClientCtx, Workload};
use docent::queue::{Codec, PutOptions, QueueBuilder};
use docent::{Client, Queue};
use docent_checker::{DeadReason, Decodable, QueueRules, Queued, QueuedAs};
use docent_server::{Transaction, TransactionKind};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::sleep;

/// Folder of the queues.
const QUEUES: &str = "/queues";

/// Number of bytes before an item in its node.
const FRAME: usize = 8;

/// Number of items that are put immediately, and then in each second on average: many, or so few that
/// consumers mostly wait. If consumers lose the items that they take, a queue never becomes full, and without
/// this limit a run would become longer and longer.
const PUTS: [(u64, u64); 2] = [(100, 30), (3, 1)];

/// How long an item is left to other clients if there are two versions, in milliseconds.
const PATIENCE: [u64; 3] = [1_500, 5_000, 12_000];

/// Longest delay of an item, in milliseconds.
const DELAY: u64 = 3_000;

/// Pause before the next check whether more items may be put.
const AHEAD: Duration = Duration::from_millis(500);

/// Clients that put items into a few queues, some with delays and priorities, and take them in every possible
/// way. They work on them for too long or not at all, acknowledge and reject them, put them elsewhere and
/// give them back.
#[derive(Debug)]
pub(in crate::workload) struct QueueWorkload {
    stocks: Vec<Stock>,
    pace: Pace,
    /// How many tasks in ten are producers.
    producers: u8,
    /// Number of items that are put immediately, and in each second.
    puts: (u64, u64),
    /// The number of the next item. No two puts use the same number.
    next: Cell<u64>,
    /// Theme of the faults, if it is not drawn.
    theme: Option<Theme>,
    /// Time from which on all starting clients have the newer version. Before that, every other client has
    /// the older one. `None` if there is one version.
    upgrade: Option<Duration>,
}

/// Settings of one queue.
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
    /// How long items that cannot be decoded are left to other consumers.
    undecodable_after: Duration,
    /// Shortest and longest delay of items that are given back.
    redelivery: (Duration, Duration),
    /// Whether some items have a delay or a priority.
    places: bool,
    /// Whether the queue is in ordered mode: one consumer at a time takes the first item.
    ordered: bool,
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
            ordered: false,
        }
    }

    /// Options of a put: mostly none, so that the item is put at the end without a delay.
    pub(super) fn place(&self, rng: &mut Rng) -> PutOptions {
        let place = PutOptions::new();
        if !self.places || rng.bool() {
            return place;
        }
        let place = if rng.bool() { place.priority(rng.i32(-2..=2)) } else { place };
        if rng.u8(..3) == 0 { place.delay(millis(rng.u64(..DELAY))) } else { place }
    }

    /// Delay of an item that is given back after this number of hand-outs.
    pub(super) fn delay(&self, deliveries: Option<u32>) -> Duration {
        let (shortest, longest) = self.redelivery;
        let doublings = deliveries.unwrap_or(1).saturating_sub(1).min(16);
        shortest.saturating_mul(1 << doublings).min(longest)
    }

    pub(super) fn settings<T: 'static>(&self, client: &Client, codec: impl Codec<T>) -> QueueBuilder<T> {
        // With a capacity, all items can be processed in time even if they are put faster than they are
        // taken.
        let builder = Queue::builder_with(client, &self.path, codec);
        let builder = if self.ordered { builder.ordered() } else { builder };
        builder
            .max_deliveries(self.max_deliveries)
            .prefetch(self.prefetch)
            .capacity(self.capacity)
            .undecodable_after(self.undecodable_after)
            .redelivery_delay(self.redelivery.0, self.redelivery.1)
    }

    /// Returns true for an item on which all work fails.
    pub(super) fn is_poison(&self, item: u64) -> bool {
        self.poison && item.is_multiple_of(8)
    }

    fn rules(&self) -> QueueRules {
        let Self { max_deliveries, undecodable_after, ordered, .. } = *self;
        QueueRules { max_deliveries, undecodable_after, ordered }
    }

    fn queued(&self, transaction: &Transaction, versions: bool) -> Option<Queued> {
        if !matches!(transaction.kind, TransactionKind::Created) {
            return None;
        }
        let below = transaction.path.strip_prefix(&self.path)?;
        let data = transaction.data.as_deref()?;
        if below.starts_with("/items/item-") && !below.ends_with("-claim") {
            let (item, corrupt) = number(data)?;
            let decodable = match versions && is_newer_kind(item) {
                _ if corrupt => Decodable::NoClient,
                true => Decodable::Newer,
                false => Decodable::All,
            };
            return self.noted(transaction, item, QueuedAs::Item { decodable });
        }
        if !below.starts_with("/dead/letter-") {
            return None;
        }
        let end = data.iter().position(|byte| *byte == b'\n')?;
        let head = std::str::from_utf8(&data[..end]).ok()?;
        let (item, _) = number(&data[end + 1..])?;
        self.noted(transaction, item, QueuedAs::DeadLetter { reason: reason(head)? })
    }

    fn noted(&self, transaction: &Transaction, item: u64, kind: QueuedAs) -> Option<Queued> {
        let node = transaction.path.clone();
        Some(Queued { queue: self.path.clone(), node, zxid: transaction.zxid, item, kind })
    }
}

/// The number of the item in the data of a node, and whether no consumer can decode the item.
fn number(data: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(data.get(FRAME..)?).ok()?;
    let plain = text.trim_start_matches("corrupt ");
    Some((plain.parse().ok()?, plain != text))
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
        let drawn = Self {
            stocks: (0..rng.usize(1..=2)).map(|number| Stock::draw(number, rng)).collect(),
            pace: Pace::draw(rng),
            producers: rng.u8(2..=7),
            next: Cell::new(1),
            puts: PUTS[rng.usize(..PUTS.len())],
            theme: None,
            upgrade: None,
        };
        if rng.u8(..3) == 0 { drawn.with_versions(rng) } else { drawn }
    }

    /// One queue with so few items that consumers mostly wait, and some of them die now and then.
    pub(in crate::workload) fn lull(rng: &mut Rng) -> Self {
        let drawn = Self::draw(rng);
        let stocks = drawn.stocks.into_iter().take(1).collect();
        let lull = Self { stocks, producers: 3, puts: PUTS[1], theme: Some(Theme::Deaths), ..drawn };
        if rng.bool() { lull.with_versions(rng) } else { lull }
    }

    /// One queue in ordered mode, with so few items that one consumer at a time is enough.
    pub(in crate::workload) fn ordered(rng: &mut Rng) -> Self {
        let mut drawn = Self::draw(rng);
        drawn.stocks.truncate(1);
        drawn.stocks.iter_mut().for_each(|stock| stock.ordered = true);
        let ordered = Self { puts: PUTS[1], ..drawn };
        if rng.bool() { ordered.with_versions(rng) } else { ordered }
    }

    /// Adds clients of an older version.
    fn with_versions(mut self, rng: &mut Rng) -> Self {
        self.upgrade = Some(Duration::from_secs(rng.u64(10..90)));
        for stock in &mut self.stocks {
            stock.undecodable_after = millis(PATIENCE[rng.usize(..PATIENCE.len())]);
        }
        self
    }

    /// Version of a client that starts now.
    fn version(&self, rng: &mut Rng) -> Version {
        let is_upgraded = |upgrade| turmoil::sim_elapsed().unwrap_or_default() >= upgrade;
        match self.upgrade {
            Some(upgrade) if !is_upgraded(upgrade) && rng.bool() => Version::Older,
            _ => Version::Newer,
        }
    }

    /// A new item that a client of this version may put.
    pub(super) fn item(&self, version: Version) -> u64 {
        loop {
            let item = self.next.replace(self.next.get() + 1);
            if version.can_decode(item) {
                return item;
            }
        }
    }

    /// One of the queues, at random.
    pub(super) fn any<'a>(&'a self, queues: &'a [Queue<u64>], rng: &mut Rng) -> (&'a Stock, &'a Queue<u64>) {
        let number = rng.usize(..queues.len());
        (&self.stocks[number], &queues[number])
    }

    /// Returns true if enough items were put for now.
    pub(super) fn is_ahead(&self) -> bool {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default();
        let (at_once, a_second) = self.puts;
        self.next.get() > at_once + a_second * elapsed.as_secs()
    }

    /// Builds each queue once, because clones share what they know about it.
    fn build(&self, client: &Client, version: Version) -> Option<Vec<Queue<u64>>> {
        self.stocks.iter().map(|stock| stock.settings(client, Versioned(version)).build().ok()).collect()
    }

    /// One put or one take. Breaks if the client is closed.
    async fn attempt(
        &self,
        ctx: &ClientCtx,
        queues: &[Queue<u64>],
        (version, produces): (Version, bool),
        rng: &mut Rng,
    ) -> ControlFlow<()> {
        let (stock, queue) = self.any(queues, rng);
        if produces && self.is_ahead() {
            sleep(AHEAD).await;
            return ControlFlow::Continue(());
        }
        if produces {
            return producer::put(self, ctx, stock, queue, version, rng).await;
        }
        Consumer { work: self, ctx, stock, queue, queues, pace: &self.pace, version }.consume(rng).await
    }

    /// Empties the queues, once nothing new begins.
    async fn drain(&self, ctx: &ClientCtx, queues: &[Queue<u64>], version: Version, rng: &mut Rng) {
        for (stock, queue) in self.stocks.iter().zip(queues) {
            let consumer = Consumer { work: self, ctx, stock, queue, queues, pace: &self.pace, version };
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

    fn least_timeout(&self) -> Duration {
        // The places of dead clients must remain for long.
        if self.theme.is_some() { Duration::from_secs(10) } else { Duration::ZERO }
    }

    fn nodes(&self) -> Vec<String> {
        vec![QUEUES.to_owned(), WRITTEN.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        let folders =
            |stock: &Stock| ["idle", "claims", "lock"].map(|folder| format!("{}/{folder}", stock.path));
        self.stocks.iter().flat_map(folders).collect()
    }

    fn queues(&self) -> BTreeMap<String, QueueRules> {
        self.stocks.iter().map(|stock| (stock.path.clone(), stock.rules())).collect()
    }

    fn queued(&self, journal: &[Transaction]) -> Vec<Queued> {
        let versions = self.upgrade.is_some();
        let queued = |transaction| self.stocks.iter().find_map(|stock| stock.queued(transaction, versions));
        journal.iter().filter_map(queued).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let version = self.version(rng);
            let Some(shared) = self.build(&ctx.client, version) else { return };
            let tasks = (0..self.pace.tasks(rng)).map(|_| {
                let (mut rng, ctx, shared) = (rng.fork(), &ctx, &shared);
                async move {
                    let produces = rng.u8(..10) < self.producers;
                    // Some tasks share what they know about the queues with other tasks of their client.
                    let own = if rng.bool() { self.build(&ctx.client, version) } else { None };
                    let queues = own.as_ref().unwrap_or(shared);
                    let work = (version, produces);
                    let attempt = async |rng: &mut Rng| self.attempt(ctx, queues, work, rng).await;
                    self.pace.task(ctx, rng.fork(), attempt).await;
                }
            });
            let tasks: Vec<_> = tasks.collect();
            join_all(tasks).await;
            if ctx.stop.is_cancelled() {
                self.drain(&ctx, &shared, version, rng).await;
            }
        }
        .boxed_local()
    }
}
