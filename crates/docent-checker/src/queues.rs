//! Queues, reconstructed from the clients' records and the servers' journal.

use crate::analysis::Analysis;
use crate::contender::Contender;
use crate::event::{AttemptId, ClientId, Delivering, Event, EventKind, Putting, Settlement, Taking};
use crate::journal::{Change, ChangeKind};
use crate::journal_replay::{IDLE, Moment, NodeLife};
use crate::queue_item::{Item, Place};
use crate::run::{Decodable, QueueRules, Queued, QueuedAs};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Facts about the queues of a run.
#[derive(Debug)]
pub(crate) struct Queues<'s> {
    /// Puts, in the order in which they began.
    pub(crate) puts: Vec<Put<'s>>,
    pub(crate) takes: Vec<Take<'s>>,
    pub(crate) deliveries: Vec<Delivered<'s>>,
    /// Indices of the deliveries, by the item's node, and by the item.
    by_node: HashMap<&'s str, Vec<usize>>,
    by_item: HashMap<u64, Vec<usize>>,
    /// Items, by the path of their node.
    pub(crate) items: BTreeMap<&'s str, Item<'s>>,
    /// The nodes of each item, in order.
    nodes: HashMap<u64, Vec<&'s str>>,
    /// Claims of items that do not exist.
    pub(crate) strays: Vec<&'s NodeLife>,
    pub(crate) letters: Vec<&'s Queued>,
    /// The nodes of idle consumers, each with its queue.
    pub(crate) idle: Vec<(&'s str, &'s NodeLife)>,
    /// The tickets for the locks of queues in ordered mode.
    pub(crate) tickets: Vec<Ticket<'s>>,
    /// Clients of the newer version, according to their takes.
    pub(crate) newer: BTreeSet<ClientId>,
}

/// A ticket for the lock of a queue in ordered mode.
#[derive(Debug)]
pub(crate) struct Ticket<'s> {
    pub(crate) queue: &'s str,
    pub(crate) node: &'s NodeLife,
    pub(crate) number: i32,
}

impl Ticket<'_> {
    /// Returns true if the ticket was in the line just before a transaction.
    pub(crate) fn exists_at(&self, zxid: i64) -> bool {
        self.node.created.zxid < zxid && self.node.deleted.is_none_or(|deleted| deleted.when.zxid >= zxid)
    }
}

/// One put of one or several items.
#[derive(Debug)]
pub(crate) struct Put<'s> {
    pub(crate) client: ClientId,
    pub(crate) path: &'s str,
    pub(crate) items: &'s [u64],
    pub(crate) began: Duration,
    /// Time at which the put ended, and whether the items were put, if the put reported that.
    pub(crate) ended: Option<(Duration, Option<bool>)>,
}

/// One call, or one stream, that takes items.
#[derive(Debug)]
pub(crate) struct Take<'s> {
    pub(crate) client: ClientId,
    pub(crate) path: &'s str,
    /// Whether the take waits for an item.
    pub(crate) waits: bool,
    /// Whether the client has the newer version.
    pub(crate) newer: bool,
    pub(crate) began: Duration,
    /// Time since which the future was neither polled nor dropped.
    pub(crate) unpolled: Option<Duration>,
    /// Time at which the take ended, or its process died.
    pub(crate) ended: Option<Duration>,
}

/// An item that was handed out.
#[derive(Debug)]
pub(crate) struct Delivered<'s> {
    pub(crate) client: ClientId,
    pub(crate) at: Duration,
    pub(crate) item: u64,
    pub(crate) node: &'s str,
    pub(crate) fence: u64,
    pub(crate) count: Option<u32>,
    /// Times at which the delivery was asked whether it is held, with the answers.
    pub(crate) held_checks: Vec<(Duration, bool)>,
    /// Time at which settling began, and how.
    pub(crate) settling: Option<(Duration, Settlement)>,
    pub(crate) settled: Option<(Duration, Option<bool>)>,
    /// Time from which the item may be handed out again.
    pub(crate) given_back: Option<Duration>,
    /// Nodes that transactions of the delivery wrote, each with the reported result.
    pub(crate) writes: Vec<(&'s str, Option<bool>)>,
}

/// Folder of the claims, below the path of a queue.
const CLAIMS: &str = "/claims";

/// Folder of the tickets for the lock of an ordered queue, below its path.
const LOCK: &str = "/lock";

/// The folder of the tickets for the lock of a queue.
pub(crate) fn lock_of(queue: &str) -> String {
    format!("{queue}{LOCK}")
}

impl<'s> Queues<'s> {
    pub(crate) fn of(analysis: &'s Analysis<'_>) -> Self {
        let mut queues = Self {
            puts: Vec::new(),
            takes: Vec::new(),
            deliveries: Vec::new(),
            by_node: HashMap::new(),
            by_item: HashMap::new(),
            items: BTreeMap::new(),
            nodes: HashMap::new(),
            strays: Vec::new(),
            letters: Vec::new(),
            idle: Vec::new(),
            tickets: Vec::new(),
            newer: BTreeSet::new(),
        };
        queues.listen(analysis);
        queues.collect(analysis);
        queues
    }

    /// Collects the events of clients.
    fn listen(&mut self, analysis: &'s Analysis<'_>) {
        let mut places: BTreeMap<AttemptId, usize> = BTreeMap::new();
        for event in &analysis.run.events {
            let Event { at, client: Some(client), kind } = event else { continue };
            match kind {
                EventKind::Put(id, Putting::Began { path, items }) => {
                    places.insert(*id, self.puts.len());
                    self.puts.push(Put { client: *client, path, items, began: *at, ended: None });
                }
                EventKind::Put(id, Putting::Ended(put)) => {
                    if let Some(place) = places.get(id) {
                        self.puts[*place].ended = Some((*at, *put));
                    }
                }
                EventKind::Took(id, Taking::Began { path, waits, newer }) => {
                    places.insert(*id, self.takes.len());
                    let ended = analysis.life(*client).and_then(|life| life.crashed);
                    let (client, waits, newer) = (*client, *waits, *newer);
                    self.newer.extend(newer.then_some(client));
                    let unpolled = None;
                    self.takes.push(Take { client, path, waits, newer, began: *at, unpolled, ended });
                }
                EventKind::Took(id, Taking::Unpolled) => {
                    if let Some(place) = places.get(id) {
                        self.takes[*place].unpolled = Some(*at);
                    }
                }
                EventKind::Took(id, Taking::Ended) => {
                    if let Some(place) = places.get(id) {
                        self.takes[*place].ended = Some(*at);
                    }
                }
                EventKind::Delivered(id, Delivering::Given { item, node, fence, deliveries }) => {
                    places.insert(*id, self.deliveries.len());
                    self.by_node.entry(node).or_default().push(self.deliveries.len());
                    self.by_item.entry(*item).or_default().push(self.deliveries.len());
                    self.deliveries.push(Delivered {
                        client: *client,
                        at: *at,
                        item: *item,
                        node,
                        fence: *fence,
                        count: *deliveries,
                        held_checks: Vec::new(),
                        settling: None,
                        settled: None,
                        given_back: None,
                        writes: Vec::new(),
                    });
                }
                EventKind::Delivered(id, step) => {
                    if let Some(place) = places.get(id) {
                        self.deliveries[*place].note(*at, step);
                    }
                }
                _ => {}
            }
        }
    }

    /// Collects the changes of the journal.
    fn collect(&mut self, analysis: &'s Analysis<'_>) {
        let facts = analysis.facts();
        let kinds: BTreeMap<(&str, i64), &Queued> =
            facts.queued.iter().map(|queued| ((queued.node.as_str(), queued.zxid), queued)).collect();
        for node in analysis.replay.nodes() {
            if let Some(queued) = kinds.get(&(node.path.as_str(), node.created.zxid)) {
                match queued.kind {
                    QueuedAs::Item { decodable } => {
                        let ordered = facts.queues.get(&queued.queue).is_some_and(|rules| rules.ordered);
                        self.note_item(queued, (decodable, ordered), node);
                    }
                    QueuedAs::DeadLetter { .. } => self.letters.push(queued),
                }
            } else if let Some(item) = self.items.get_mut(node.folder()) {
                item.proofs.push(node);
            } else if let Some(queue) = node.folder().strip_suffix(CLAIMS)
                && facts.queues.contains_key(queue)
            {
                let name = node.path.rsplit('/').next().unwrap_or_default();
                match self.items.get_mut(format!("{queue}/items/{name}").as_str()) {
                    Some(item) => item.claims.push(node),
                    None => self.strays.push(node),
                }
            } else if let Some(queue) = node.folder().strip_suffix("/idle")
                && node.owner != 0
                && node.path.contains(IDLE)
                && facts.queues.contains_key(queue)
            {
                self.idle.push((queue, node));
            } else if let Some(queue) = node.folder().strip_suffix(LOCK)
                && facts.queues.get(queue).is_some_and(|rules| rules.ordered)
                && let Some(contender) = Contender::of(node.path.rsplit('/').next().unwrap_or_default())
            {
                self.tickets.push(Ticket { queue, node, number: contender.number });
            }
        }
        for change in analysis.run.journal.iter().filter(|change| change.kind == ChangeKind::Set) {
            self.note_write(change);
        }
    }

    /// Notes a write to an item. In ordered mode the write counts a hand-out, or undoes that, under the first
    /// ticket of its client.
    fn note_write(&mut self, change: &Change) {
        let Some(item) = self.items.get_mut(change.path.as_str()) else { return };
        let own = self.tickets.iter().filter(|ticket| {
            ticket.queue == item.queued.queue
                && ticket.node.owner == change.session
                && ticket.exists_at(change.zxid)
        });
        let ticket = own.min_by_key(|ticket| ticket.number).map(|ticket| ticket.node);
        let write = Moment { zxid: change.zxid, at: change.at };
        item.written.push((write, ticket.map(|ticket| ticket.created.zxid)));
        item.claims
            .extend(ticket.filter(|ticket| item.claims.iter().all(|claim| !std::ptr::eq(*claim, *ticket))));
    }

    fn note_item(&mut self, queued: &'s Queued, (decodable, ordered): (Decodable, bool), node: &'s NodeLife) {
        let Some(place) = Place::of(&node.path) else { return };
        let nodes = self.nodes.entry(queued.item).or_default();
        let earlier = nodes.last().and_then(|path| self.items.get(path));
        let is_moved_here = earlier.is_some_and(|earlier| {
            earlier.queued.queue == queued.queue
                && earlier.node.deleted.is_some_and(|deleted| deleted.when.zxid == node.created.zxid)
        });
        nodes.push(&node.path);
        let (claims, proofs, written) = (Vec::new(), Vec::new(), Vec::new());
        let item = Item { queued, decodable, ordered, place, node, is_moved_here, claims, proofs, written };
        self.items.insert(&node.path, item);
    }

    /// The nodes of an item, in order.
    pub(crate) fn nodes_of_item(&self, item: u64) -> impl Iterator<Item = &Item<'s>> {
        self.nodes.get(&item).into_iter().flatten().filter_map(|path| self.items.get(path))
    }

    /// The item at the place to which a transaction moved it.
    pub(crate) fn moved_by(&self, item: u64, zxid: i64) -> Option<&Item<'s>> {
        self.nodes_of_item(item).find(|item| item.is_moved_here && item.node.created.zxid == zxid)
    }

    /// How a delivery was settled whose transaction `zxid` deleted the item's node.
    pub(crate) fn settlement(&self, item: &Item<'_>, zxid: i64) -> Settlement {
        let number = item.queued.item;
        if self.letters.iter().any(|letter| letter.zxid == zxid && letter.item == number) {
            Settlement::Reject
        } else if self.moved_by(number, zxid).is_some() {
            Settlement::PutBack
        } else {
            Settlement::Ack
        }
    }

    /// The settings of a queue.
    pub(crate) fn rules(&self, analysis: &Analysis<'_>, queue: &str) -> QueueRules {
        let unknown =
            QueueRules { max_deliveries: u32::MAX, undecodable_after: Duration::ZERO, ordered: false };
        analysis.facts().queues.get(queue).copied().unwrap_or(unknown)
    }

    /// The deliveries from a node.
    pub(crate) fn deliveries_of(&self, node: &str) -> impl Iterator<Item = &Delivered<'s>> {
        self.by_node.get(node).into_iter().flatten().map(|index| &self.deliveries[*index])
    }

    /// The deliveries of an item, from any node.
    pub(crate) fn deliveries_of_item(&self, item: u64) -> impl Iterator<Item = &Delivered<'s>> {
        self.by_item.get(&item).into_iter().flatten().map(|index| &self.deliveries[*index])
    }

    /// The item and the claim of a delivery.
    pub(crate) fn claim_of(&self, delivered: &Delivered<'_>) -> Option<(&Item<'s>, &'s NodeLife)> {
        let item = self.items.get(delivered.node)?;
        let claim = item.claims.iter().find(|claim| claim.created.zxid.unsigned_abs() == delivered.fence)?;
        Some((item, claim))
    }

    /// The takes of a client at a queue.
    pub(crate) fn takes_of<'b>(
        &'b self,
        client: ClientId,
        path: &'b str,
    ) -> impl Iterator<Item = &'b Take<'s>> {
        self.takes.iter().filter(move |take| take.client == client && take.path == path)
    }
}

impl<'s> Delivered<'s> {
    fn note(&mut self, at: Duration, step: &'s Delivering) {
        match step {
            Delivering::HeldChecked { held } => self.held_checks.push((at, *held)),
            Delivering::Settling(way) => self.settling = Some((at, *way)),
            Delivering::Settled(settled) => self.settled = Some((at, *settled)),
            Delivering::GivenBack { delay } => self.given_back = Some(at + *delay),
            Delivering::Wrote { node, applied } => self.writes.push((node, *applied)),
            Delivering::Given { .. } => {}
        }
    }
}
