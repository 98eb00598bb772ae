use super::builder::{HistoryBuilder, QUEUE};
use crate::event::{AttemptId, Delivering, EventKind, Putting, Settlement, Taking};
use crate::journal::ChangeKind;
use crate::run::{DeadReason, Decodable, Queued, QueuedAs};
use std::time::Duration;

/// An item of the queue.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) item: u64,
    pub(crate) node: String,
}

/// An item that was handed out.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) item: Stored,
    /// The path of the claim, or of the ticket for the lock.
    claim: String,
    pub(crate) fence: u64,
    id: AttemptId,
    number: u32,
}

impl Given {
    /// The path of the claim.
    pub(crate) fn claim(&self) -> String {
        claim_of(&self.item)
    }
}

/// Events of the producers and consumers of the queue at [`QUEUE`].
pub(crate) trait QueueEvents: Sized {
    /// An item is handed out to client 1 at 200 ms.
    fn of_delivery() -> (Self, Given);

    /// A put begins.
    fn putting(&mut self, number: u32, items: &[u64]) -> AttemptId;

    fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self;

    /// The nodes of the items are created, in one transaction.
    fn stored(&mut self, number: u32, items: &[u64]) -> &mut Self;

    /// An item is put successfully.
    fn put(&mut self, number: u32, item: u64) -> Stored;

    /// An item is put at a place, which is written before the number in the node's name.
    fn put_at(&mut self, number: u32, item: u64, place: &str) -> Stored;

    /// Marks an item as one that no consumer can decode.
    fn undecodable(&mut self, item: &Stored) -> &mut Self;

    fn take(&mut self, number: u32, waits: bool) -> AttemptId;

    fn end_take(&mut self, number: u32, take: AttemptId) -> &mut Self;

    /// A client joins the line of idle consumers.
    fn idle(&mut self, number: u32) -> String;

    /// An item is claimed with a proof, which counts as a hand-out.
    fn claim(&mut self, number: u32, item: &Stored) -> String;

    /// An item is claimed without being counted as handed out.
    fn claim_uncounted(&mut self, number: u32, item: &Stored) -> String;

    /// A claim is deleted, and its count is undone.
    fn take_back(&mut self, number: u32, item: &Stored) -> &mut Self;

    /// An item is claimed and handed out.
    fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given;

    /// Switches the queue to ordered mode.
    fn ordered(&mut self) -> &mut Self;

    /// Sets the time in milliseconds for which an older client leaves items that it cannot decode to newer
    /// clients.
    fn patient(&mut self, ms: u64) -> &mut Self;

    /// Marks an item as one that only clients of the newer version can decode.
    fn of_newer_kind(&mut self, item: &Stored) -> &mut Self;

    /// A client of the newer version begins a take.
    fn take_newer(&mut self, number: u32, waits: bool) -> AttemptId;

    /// In ordered mode an item is counted under a new ticket for the lock, and handed out.
    fn give_locked(&mut self, number: u32, item: &Stored, count: u32) -> Given;

    /// An item is handed out without a claim.
    fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self;

    fn held(&mut self, given: &Given, held: bool) -> &mut Self;

    fn acking(&mut self, given: &Given) -> &mut Self;

    fn settling(&mut self, given: &Given, way: Settlement) -> &mut Self;

    fn settled(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self;

    fn given_back(&mut self, given: &Given) -> &mut Self;

    /// A delivery is given back, for `later` milliseconds later.
    fn given_back_for(&mut self, given: &Given, later: u64) -> &mut Self;

    /// A delivery's client deletes the claim and its proof.
    fn delete_claim(&mut self, given: &Given) -> &mut Self;

    /// Like [`delete_claim`](Self::delete_claim), after another claim was created at the same path. The proof
    /// of that claim stays.
    fn delete_claim_late(&mut self, given: &Given) -> &mut Self;

    /// A client deletes its claim of an item, and the proof.
    fn end_claim(&mut self, number: u32, item: &Stored) -> &mut Self;

    /// Another client deletes the proof of a delivery's claim.
    fn evict(&mut self, given: &Given) -> &mut Self;

    /// Records a step of a delivery.
    fn of_given(&mut self, given: &Given, step: Delivering) -> &mut Self;

    /// A delivery's client deletes the item and the claim.
    fn end_item(&mut self, given: &Given) -> &mut Self;

    /// Like [`end_item`](Self::end_item), and the same transaction creates the item at another place.
    fn move_item(&mut self, given: &Given, place: &str) -> Stored;

    /// The dead letter of an item is created.
    fn letter(&mut self, item: &Stored, reason: DeadReason) -> &mut Self;

    /// Like [`end_item`](Self::end_item), and the same transaction makes the item a dead letter.
    fn reject_item(&mut self, given: &Given) -> &mut Self;

    /// A client claims an item and moves it to the dead letters.
    fn bury(&mut self, number: u32, item: &Stored, reason: DeadReason) -> &mut Self;
}

impl QueueEvents for HistoryBuilder {
    fn of_delivery() -> (Self, Given) {
        let mut history = Self::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        (history, given)
    }

    fn putting(&mut self, number: u32, items: &[u64]) -> AttemptId {
        let id = self.next_id();
        let began = Putting::Began { path: QUEUE.to_owned(), items: items.to_vec() };
        self.record(number, EventKind::Put(id, began));
        id
    }

    fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self {
        self.record(number, EventKind::Put(put, Putting::Ended(outcome)))
    }

    fn stored(&mut self, number: u32, items: &[u64]) -> &mut Self {
        let session = self.session_of(number);
        self.zxid += 1;
        for item in items {
            store(self, session, *item, "");
        }
        self
    }

    fn put(&mut self, number: u32, item: u64) -> Stored {
        let put = self.putting(number, &[item]);
        self.stored(number, &[item]).put_ended(number, put, Some(true));
        let node = self.run.facts.queued.last().map(|queued| queued.node.clone()).unwrap_or_default();
        Stored { item, node }
    }

    fn put_at(&mut self, number: u32, item: u64, place: &str) -> Stored {
        let put = self.putting(number, &[item]);
        let session = self.session_of(number);
        self.zxid += 1;
        let stored = store(self, session, item, place);
        self.put_ended(number, put, Some(true));
        stored
    }

    fn undecodable(&mut self, item: &Stored) -> &mut Self {
        set_decodable(self, item, Decodable::NoClient)
    }

    fn of_newer_kind(&mut self, item: &Stored) -> &mut Self {
        set_decodable(self, item, Decodable::Newer)
    }

    fn ordered(&mut self) -> &mut Self {
        self.run.facts.queues.values_mut().for_each(|rules| rules.ordered = true);
        self
    }

    fn patient(&mut self, ms: u64) -> &mut Self {
        let patience = Duration::from_millis(ms);
        self.run.facts.queues.values_mut().for_each(|rules| rules.undecodable_after = patience);
        self
    }

    fn take(&mut self, number: u32, waits: bool) -> AttemptId {
        begin_take(self, number, waits, false)
    }

    fn take_newer(&mut self, number: u32, waits: bool) -> AttemptId {
        begin_take(self, number, waits, true)
    }

    fn give_locked(&mut self, number: u32, item: &Stored, count: u32) -> Given {
        let session = self.session_of(number);
        let next = self.numbers.entry(format!("{QUEUE}/lock")).or_default();
        *next += 1;
        let ticket = format!("{QUEUE}/lock/_c_00000000-0000-4000-8000-{:012}-lock-{:010}", *next, *next - 1);
        self.create_node(&ticket, session, session);
        let fence = self.zxid.unsigned_abs();
        self.zxid += 1;
        self.change(session, ChangeKind::Set, &item.node, 0);
        let id = self.next_id();
        self.record(number, EventKind::Delivered(id, given(item, fence, Some(count))));
        Given { item: item.clone(), claim: ticket, fence, id, number }
    }

    fn end_take(&mut self, number: u32, take: AttemptId) -> &mut Self {
        self.record(number, EventKind::Took(take, Taking::Ended))
    }

    fn idle(&mut self, number: u32) -> String {
        let session = self.session_of(number);
        let node = format!("{QUEUE}/idle/_c_00000000-0000-4000-8000-{:012}-idle-0000000000", self.zxid + 1);
        self.create_node(&node, session, session);
        node
    }

    fn claim(&mut self, number: u32, item: &Stored) -> String {
        let claim = self.claim_uncounted(number, item);
        let session = self.session_of(number);
        let proof = proof(item, self.zxid.unsigned_abs());
        self.change(session, ChangeKind::Created, &proof, session);
        self.nodes.insert(proof, (self.zxid, session));
        claim
    }

    fn claim_uncounted(&mut self, number: u32, item: &Stored) -> String {
        let session = self.session_of(number);
        let claim = claim_of(item);
        self.create_node(&claim, session, session);
        claim
    }

    fn take_back(&mut self, number: u32, item: &Stored) -> &mut Self {
        let session = self.session_of(number);
        self.end_claim(number, item);
        self.change(session, ChangeKind::Set, &item.node, 0);
        self
    }

    fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given {
        self.claim(number, item);
        let (id, fence) = (self.next_id(), self.zxid.unsigned_abs());
        self.record(number, EventKind::Delivered(id, given(item, fence, Some(count))));
        Given { item: item.clone(), claim: claim_of(item), fence, id, number }
    }

    fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self {
        let id = self.next_id();
        self.record(number, EventKind::Delivered(id, given(item, fence, Some(1))))
    }

    fn held(&mut self, given: &Given, held: bool) -> &mut Self {
        record_delivery(self, given, Delivering::HeldChecked { held })
    }

    fn acking(&mut self, given: &Given) -> &mut Self {
        self.settling(given, Settlement::Ack)
    }

    fn settling(&mut self, given: &Given, way: Settlement) -> &mut Self {
        record_delivery(self, given, Delivering::Settling(way))
    }

    fn settled(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self {
        record_delivery(self, given, Delivering::Settled(outcome))
    }

    fn given_back(&mut self, given: &Given) -> &mut Self {
        self.given_back_for(given, 0)
    }

    fn given_back_for(&mut self, given: &Given, later: u64) -> &mut Self {
        record_delivery(self, given, Delivering::GivenBack { delay: Duration::from_millis(later) })
    }

    fn delete_claim(&mut self, given: &Given) -> &mut Self {
        end_hold(self, given.number, &given.claim, &given.item)
    }

    fn delete_claim_late(&mut self, given: &Given) -> &mut Self {
        let session = self.session_of(given.number);
        self.delete_path(&given.claim, session);
        self.zxid -= 1;
        self.delete_path(&proof(&given.item, given.fence), session)
    }

    fn end_claim(&mut self, number: u32, item: &Stored) -> &mut Self {
        end_hold(self, number, &claim_of(item), item)
    }

    fn evict(&mut self, given: &Given) -> &mut Self {
        let session = self.session_of(given.number);
        for proof in proofs(self, &given.item, session) {
            self.delete_path(&proof, 3);
        }
        self
    }

    fn of_given(&mut self, given: &Given, step: Delivering) -> &mut Self {
        record_delivery(self, given, step)
    }

    fn end_item(&mut self, given: &Given) -> &mut Self {
        let session = self.session_of(given.number);
        self.delete_claim(given);
        self.zxid -= 1;
        self.delete_path(&given.item.node, session)
    }

    fn move_item(&mut self, given: &Given, place: &str) -> Stored {
        let session = self.session_of(given.number);
        self.end_item(given);
        store(self, session, given.item.item, place)
    }

    fn letter(&mut self, item: &Stored, reason: DeadReason) -> &mut Self {
        let node = format!("{QUEUE}/dead/letter-{:010}", self.zxid);
        self.create_node(&node, 1, 0);
        note_item(self, item.item, node, QueuedAs::DeadLetter { reason });
        self
    }

    fn reject_item(&mut self, given: &Given) -> &mut Self {
        self.end_item(given);
        self.zxid -= 1;
        self.letter(&given.item, DeadReason::Rejected)
    }

    fn bury(&mut self, number: u32, item: &Stored, reason: DeadReason) -> &mut Self {
        let take = self.take(number, true);
        self.claim(number, item);
        let session = self.session_of(number);
        self.end_take(number, take).end_claim(number, item);
        self.zxid -= 1;
        self.delete_path(&item.node, session);
        self.zxid -= 1;
        self.letter(item, reason)
    }
}

/// Creates the node of an item, in the current transaction.
fn store(history: &mut HistoryBuilder, session: i64, item: u64, place: &str) -> Stored {
    let next = history.numbers.entry(QUEUE.to_owned()).or_default();
    *next += 1;
    let node = format!("{QUEUE}/items/item-{place}{:010}", *next - 1);
    history.change(session, ChangeKind::Created, &node, 0);
    history.nodes.insert(node.clone(), (history.zxid, 0));
    note_item(history, item, node.clone(), QueuedAs::Item { decodable: Decodable::All });
    Stored { item, node }
}

/// Deletes a claim, or a ticket for the lock, with its proofs.
fn end_hold<'h>(
    history: &'h mut HistoryBuilder,
    number: u32,
    hold: &str,
    item: &Stored,
) -> &'h mut HistoryBuilder {
    let session = history.session_of(number);
    history.delete_path(hold, session);
    for proof in proofs(history, item, session) {
        history.zxid -= 1;
        history.delete_path(&proof, session);
    }
    history
}

fn set_decodable<'h>(
    history: &'h mut HistoryBuilder,
    item: &Stored,
    decodable: Decodable,
) -> &'h mut HistoryBuilder {
    for queued in history.run.facts.queued.iter_mut().filter(|queued| queued.node == item.node) {
        queued.kind = QueuedAs::Item { decodable };
    }
    history
}

fn begin_take(history: &mut HistoryBuilder, number: u32, waits: bool, newer: bool) -> AttemptId {
    let id = history.next_id();
    let began = Taking::Began { path: QUEUE.to_owned(), waits, newer };
    history.record(number, EventKind::Took(id, began));
    id
}

fn claim_of(item: &Stored) -> String {
    item.node.replace("/items/", "/claims/")
}

/// The path of the proof of the claim that the transaction `zxid` created.
fn proof(item: &Stored, zxid: u64) -> String {
    format!("{}/{zxid}-claim", item.node)
}

/// The paths of the existing proofs of an item that a session created.
fn proofs(history: &HistoryBuilder, item: &Stored, session: i64) -> Vec<String> {
    let folder = format!("{}/", item.node);
    let own =
        history.nodes.iter().filter(|(path, (_, owner))| path.starts_with(&folder) && *owner == session);
    own.map(|(path, _)| path.clone()).collect()
}

fn note_item(history: &mut HistoryBuilder, item: u64, node: String, kind: QueuedAs) {
    let zxid = history.zxid;
    history.run.facts.queued.push(Queued { queue: QUEUE.to_owned(), node, zxid, item, kind });
}

fn given(item: &Stored, fence: u64, deliveries: Option<u32>) -> Delivering {
    let Stored { item, node } = item.clone();
    Delivering::Given { item, node, fence, deliveries }
}

fn record_delivery<'h>(
    history: &'h mut HistoryBuilder,
    given: &Given,
    step: Delivering,
) -> &'h mut HistoryBuilder {
    history.record(given.number, EventKind::Delivered(given.id, step))
}
