use super::builder::{HistoryBuilder, QUEUE};
use crate::event::{AttemptId, Delivering, EventKind, Putting, Settlement, Taking};
use crate::journal::ChangeKind;
use crate::run::{DeadReason, Queued, QueuedAs};
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
    pub(crate) fence: u64,
    id: AttemptId,
    number: u32,
}

/// Events of the producers and consumers of the queue at [`QUEUE`].
pub(crate) trait QueueEvents: Sized {
    /// Client 1 was given an item at 200.
    fn of_delivery() -> (Self, Given);

    /// A put begins.
    fn putting(&mut self, number: u32, items: &[u64]) -> AttemptId;

    fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self;

    /// The nodes of items come, in one step.
    fn stored(&mut self, number: u32, items: &[u64]) -> &mut Self;

    /// An item is put, and there.
    fn put(&mut self, number: u32, item: u64) -> Stored;

    /// An item is put at a place, which stands before the number in its name.
    fn put_at(&mut self, number: u32, item: u64, place: &str) -> Stored;

    /// That item cannot be decoded.
    fn undecodable(&mut self, item: &Stored) -> &mut Self;

    fn take(&mut self, number: u32, waits: bool) -> AttemptId;

    fn over(&mut self, number: u32, take: AttemptId) -> &mut Self;

    /// Somebody takes a place in the line of the idle.
    fn idle(&mut self, number: u32) -> String;

    /// The claim of an item, counted as a hand-out.
    fn claim(&mut self, number: u32, item: &Stored) -> String;

    /// The claim of an item that is not counted.
    fn claim_uncounted(&mut self, number: u32, item: &Stored) -> String;

    /// A claim is deleted, and its count taken back.
    fn take_back(&mut self, number: u32, item: &Stored) -> &mut Self;

    /// An item is claimed and handed out.
    fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given;

    /// An item is handed out, and no claim made.
    fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self;

    fn held(&mut self, given: &Given, held: bool) -> &mut Self;

    fn acking(&mut self, given: &Given) -> &mut Self;

    fn settling(&mut self, given: &Given, way: Settlement) -> &mut Self;

    fn settled(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self;

    fn given_back(&mut self, given: &Given) -> &mut Self;

    /// It is given back for so many milliseconds later.
    fn given_back_for(&mut self, given: &Given, later: u64) -> &mut Self;

    /// The claim of a delivery is deleted by its client.
    fn delete_claim(&mut self, given: &Given) -> &mut Self;

    /// The item of a delivery is deleted by its client, and the claim with it.
    fn end_item(&mut self, given: &Given) -> &mut Self;

    /// As [`end_item`](Self::end_item), and the item is at another place in the same step.
    fn move_item(&mut self, given: &Given, place: &str) -> Stored;

    /// The dead letter of an item comes.
    fn letter(&mut self, item: &Stored, reason: DeadReason) -> &mut Self;

    /// As [`end_item`](Self::end_item), and the item becomes a dead letter in the same step.
    fn reject_item(&mut self, given: &Given) -> &mut Self;

    /// Somebody claims an item and moves it to the dead letters.
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
        self.tell(number, EventKind::Put(id, began));
        id
    }

    fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self {
        self.tell(number, EventKind::Put(put, Putting::Ended(outcome)))
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
        for queued in &mut self.run.facts.queued {
            if queued.node == item.node {
                queued.kind = QueuedAs::Item { decodable: false };
            }
        }
        self
    }

    fn take(&mut self, number: u32, waits: bool) -> AttemptId {
        let id = self.next_id();
        self.tell(number, EventKind::Took(id, Taking::Began { path: QUEUE.to_owned(), waits }));
        id
    }

    fn over(&mut self, number: u32, take: AttemptId) -> &mut Self {
        self.tell(number, EventKind::Took(take, Taking::Over))
    }

    fn idle(&mut self, number: u32) -> String {
        let session = self.session_of(number);
        let node = format!("{QUEUE}/idle/_c_00000000-0000-4000-8000-{:012}-idle-0000000000", self.zxid + 1);
        self.make(&node, session, session);
        node
    }

    fn claim(&mut self, number: u32, item: &Stored) -> String {
        let claim = self.claim_uncounted(number, item);
        let (session, counter) = (self.session_of(number), format!("{}/count", item.node));
        self.change(session, ChangeKind::Created, &counter, 0);
        self.change(session, ChangeKind::Deleted, &counter, 0);
        claim
    }

    fn claim_uncounted(&mut self, number: u32, item: &Stored) -> String {
        let session = self.session_of(number);
        let claim = claim_of(item);
        self.make(&claim, session, session);
        claim
    }

    fn take_back(&mut self, number: u32, item: &Stored) -> &mut Self {
        let session = self.session_of(number);
        self.delete_path(&claim_of(item), session);
        self.change(session, ChangeKind::Set, &item.node, 0);
        self
    }

    fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given {
        self.claim(number, item);
        let (id, fence) = (self.next_id(), self.zxid.unsigned_abs());
        self.tell(number, EventKind::Delivered(id, given(item, fence, Some(count))));
        Given { item: item.clone(), fence, id, number }
    }

    fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self {
        let id = self.next_id();
        self.tell(number, EventKind::Delivered(id, given(item, fence, Some(1))))
    }

    fn held(&mut self, given: &Given, held: bool) -> &mut Self {
        tell_of(self, given, Delivering::Looked { held })
    }

    fn acking(&mut self, given: &Given) -> &mut Self {
        self.settling(given, Settlement::Ack)
    }

    fn settling(&mut self, given: &Given, way: Settlement) -> &mut Self {
        tell_of(self, given, Delivering::Settling(way))
    }

    fn settled(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self {
        tell_of(self, given, Delivering::Settled(outcome))
    }

    fn given_back(&mut self, given: &Given) -> &mut Self {
        self.given_back_for(given, 0)
    }

    fn given_back_for(&mut self, given: &Given, later: u64) -> &mut Self {
        tell_of(self, given, Delivering::GivenBack { delay: Duration::from_millis(later) })
    }

    fn delete_claim(&mut self, given: &Given) -> &mut Self {
        let session = self.session_of(given.number);
        self.delete_path(&claim_of(&given.item), session)
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
        self.make(&node, 1, 0);
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
        let (claim, session) = (self.claim(number, item), self.session_of(number));
        self.over(number, take).delete_path(&claim, session);
        self.zxid -= 1;
        self.delete_path(&item.node, session);
        self.zxid -= 1;
        self.letter(item, reason)
    }
}

/// Makes the node of an item, in the present transaction.
fn store(history: &mut HistoryBuilder, session: i64, item: u64, place: &str) -> Stored {
    let next = history.numbers.entry(QUEUE.to_owned()).or_default();
    *next += 1;
    let node = format!("{QUEUE}/items/item-{place}{:010}", *next - 1);
    history.change(session, ChangeKind::Created, &node, 0);
    history.nodes.insert(node.clone(), (history.zxid, 0));
    note_item(history, item, node.clone(), QueuedAs::Item { decodable: true });
    Stored { item, node }
}

fn claim_of(item: &Stored) -> String {
    item.node.replace("/items/", "/claims/")
}

fn note_item(history: &mut HistoryBuilder, item: u64, node: String, kind: QueuedAs) {
    let zxid = history.zxid;
    history.run.facts.queued.push(Queued { queue: QUEUE.to_owned(), node, zxid, item, kind });
}

fn given(item: &Stored, fence: u64, deliveries: Option<u32>) -> Delivering {
    let Stored { item, node } = item.clone();
    Delivering::Given { item, node, fence, deliveries }
}

fn tell_of<'h>(history: &'h mut HistoryBuilder, given: &Given, step: Delivering) -> &'h mut HistoryBuilder {
    history.tell(given.number, EventKind::Delivered(given.id, step))
}
